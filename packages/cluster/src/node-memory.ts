import { codeOf, fromUtf8, messageOf, type Revision, utf8, WebdfsError } from '@webdfs/base';

/** What a node keeps on its own disk about the cluster: an older one than the map knows proves an old disk. */
export interface NodeMemory {
  /** 32 hex digits. */
  readonly cluster: string;
  /** The newest state of the map that it has seen. */
  readonly era: number;
  readonly revision: Revision;
  /** Equal to `node/<n>`'s, or one ahead. */
  readonly life: number;
}

/** Where a node keeps its memory: one small file, replaced whole and durably. */
export interface MemoryFile {
  load(): Promise<Uint8Array | undefined>;
  /** Resolves when the bytes are on stable storage. */
  save(bytes: Uint8Array): Promise<void>;
}

const VERSION = 1;

export function packMemory(memory: NodeMemory): Uint8Array {
  return utf8(`${JSON.stringify({ version: VERSION, ...memory })}\n`);
}

function count(value: unknown): number {
  if (!Number.isSafeInteger(value) || (value as number) < 0) throw new WebdfsError('CORRUPT', 'not a count');
  return value as number;
}

/** @throws CORRUPT, NEWER_FORMAT */
export function unpackMemory(bytes: Uint8Array): NodeMemory {
  try {
    const fields = JSON.parse(fromUtf8(bytes)) as Record<string, unknown>;
    if (typeof fields['version'] === 'number' && fields['version'] > VERSION) {
      throw new WebdfsError('NEWER_FORMAT', `version ${fields['version']}, this program knows ${VERSION}`);
    }
    const { cluster } = fields;
    if (typeof cluster !== 'string') throw new WebdfsError('CORRUPT', 'no cluster');
    return {
      cluster,
      era: count(fields['era']),
      revision: count(fields['revision']),
      life: count(fields['life']),
    };
  } catch (error) {
    const code = codeOf(error) === 'NEWER_FORMAT' ? 'NEWER_FORMAT' : 'CORRUPT';
    throw new WebdfsError(code, `the node's memory of its cluster: ${messageOf(error)}`, { cause: error });
  }
}
