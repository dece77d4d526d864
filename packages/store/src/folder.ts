import {
  codeOf,
  type Disk,
  fromUtf8,
  type Random,
  readWhole,
  replaceWhole,
  toHex,
  utf8,
  WebdfsError,
} from '@webdfs/base';
import { MAX_FILE_BYTES } from './limits.ts';
import type { Identity } from './store.ts';
import { listVolumes } from './volume-format.ts';

const FORMAT = 1;
const OWN_NAMES = ['identity', 'lock', 'volumes', 'index', 'index.new', 'ballast', 'rebuild'];

/** Paths inside a store's folder. */
export class StoreFolder {
  readonly path: string;
  readonly volumes: string;
  readonly index: string;
  readonly newIndex: string;
  readonly lock: string;
  readonly ballast: string;
  readonly #disk: Disk;
  /** The last `save`. */
  #saved: Promise<unknown> = Promise.resolve();

  constructor(disk: Disk, path: string) {
    this.#disk = disk;
    this.path = path;
    this.volumes = `${path}/volumes`;
    this.index = `${path}/index`;
    this.newIndex = `${path}/index.new`;
    this.lock = `${path}/lock`;
    this.ballast = `${path}/ballast`;
  }

  /**
   * Reads whose folder this is; makes it theirs if it is new.
   *
   * @throws BAD_CONFIG if it belongs to another node or cluster, NEWER_FORMAT, CORRUPT if the file is gone or unreadable
   */
  async identify(owner: { node: number; cluster: string; storeId?: string }, random: Random): Promise<Identity> {
    await this.#disk.makeFolder(this.volumes);
    // what a killed process renamed is seen here, and must not be taken back by a later loss of power
    await this.#disk.syncFolder(this.path);
    const known = await this.known();
    if (known === undefined) {
      if ((await listVolumes(this.#disk, this.volumes)).length > 0) {
        throw new WebdfsError('CORRUPT', `${this.path} has volumes but no identity file`);
      }
      const { node, cluster, storeId = toHex(random.bytes(16)) } = owner;
      const identity: Identity = { storeId, node, cluster };
      // the names of the new folders must outlive a power cut, or everything acknowledged in them would not
      await this.#disk.syncFolder(this.path);
      await this.#disk.syncFolder(this.path.slice(0, this.path.lastIndexOf('/')) || '/');
      const text = JSON.stringify({ format: FORMAT, ...identity });
      await replaceWhole(this.#disk, this.path, 'identity', utf8(text));
      return identity;
    }
    if (known.node !== owner.node || known.cluster !== owner.cluster) {
      throw new WebdfsError(
        'BAD_CONFIG',
        `${this.path} belongs to node ${known.node} of cluster ${known.cluster}, not to node ${owner.node} of ${owner.cluster}`,
      );
    }
    return known;
  }

  /** Whose folder this is, if it is somebody's already. @throws NEWER_FORMAT, CORRUPT */
  async known(): Promise<Identity | undefined> {
    const bytes = await this.#readIfThere('identity');
    if (bytes === undefined) return undefined;
    let found: Partial<Identity> & { format?: number };
    try {
      found = JSON.parse(fromUtf8(bytes)) as Partial<Identity> & { format?: number };
    } catch (error) {
      throw new WebdfsError('CORRUPT', `${this.path}/identity is no JSON`, { cause: error });
    }
    if (typeof found.format === 'number' && found.format > FORMAT) {
      throw new WebdfsError(
        'NEWER_FORMAT',
        `${this.path} has format ${found.format}, this program knows ${FORMAT}: upgrade the node`,
      );
    }
    const { storeId, node, cluster } = found;
    if (
      typeof storeId !== 'string' ||
      !/^[0-9a-f]{32}$/.test(storeId) ||
      typeof node !== 'number' ||
      typeof cluster !== 'string'
    ) {
      throw new WebdfsError('CORRUPT', `${this.path}/identity lacks its fields`);
    }
    return { storeId, node, cluster };
  }

  async #readIfThere(name: string): Promise<Uint8Array | undefined> {
    try {
      return await readWhole(this.#disk, `${this.path}/${name}`);
    } catch (error) {
      if (codeOf(error) === 'NOT_FOUND') return undefined;
      throw error;
    }
  }

  /** Replaces a small file of the owner's, whole and durably. @throws INVALID for a name that is not theirs to use */
  async save(name: string, bytes: Uint8Array): Promise<void> {
    this.#checkName(name);
    if (bytes.length > MAX_FILE_BYTES) throw new WebdfsError('TOO_LARGE', `${name} has ${bytes.length} bytes`);
    // one after another: two that run at once would share a temporary file
    const replace = (): Promise<void> => replaceWhole(this.#disk, this.path, name, bytes);
    const saved = this.#saved.then(replace, replace);
    this.#saved = saved.catch(() => undefined);
    await saved;
  }

  async load(name: string): Promise<Uint8Array | undefined> {
    this.#checkName(name);
    return this.#readIfThere(name);
  }

  #checkName(name: string): void {
    if (!/^[a-z0-9][a-z0-9._-]{0,63}$/.test(name) || name.endsWith('.new') || OWN_NAMES.includes(name)) {
      throw new WebdfsError('INVALID', `${name} is no name for a file beside the volumes`);
    }
  }

  /** Remembers that the index is wrong: the next start rebuilds it. */
  async distrustIndex(): Promise<void> {
    if (!(await this.isIndexDistrusted())) await replaceWhole(this.#disk, this.path, 'rebuild', utf8('1\n'));
  }

  isIndexDistrusted(): Promise<boolean> {
    return this.#disk.exists(`${this.path}/rebuild`);
  }

  async trustIndex(): Promise<void> {
    await this.#disk.unlink(`${this.path}/rebuild`);
    await this.#disk.syncFolder(this.path);
  }
}

/** Whose store lies in a folder; undefined if there is none. @throws NEWER_FORMAT, CORRUPT */
export async function readIdentity(disk: Disk, folder: string): Promise<Identity | undefined> {
  return await new StoreFolder(disk, folder).known();
}
