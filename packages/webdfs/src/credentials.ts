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

/** The keys of the cluster's owner, as S3 knows them. */
export interface Credentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
}

/** A cluster secret that is accepted beside the present one. */
export interface OtherSecret {
  /** 64 hex digits. */
  readonly secret: string;
  /** Wall clock. */
  readonly untilMs: number;
  /** It was made to follow the present one, and is not used yet. */
  readonly isNext?: boolean;
}

/** Secrets that live in the data folder, mode 0600. */
export interface Secrets extends Credentials {
  /** 32 bytes as hex: proves that a node belongs to the cluster. */
  readonly clusterSecret: string;
  readonly otherSecrets?: readonly OtherSecret[];
  /** Names (`secretName`) of those that were the present one before: a token of theirs is no mistake, and changes nothing. */
  readonly formerNames?: readonly string[];
}

const FILE = 'credentials.json';
const KEY_ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567';
const SECRET_ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+-';

function draw(random: Random, alphabet: string, count: number): string {
  // both alphabets have a power of two of letters, so that a mask draws evenly
  return Array.from(random.bytes(count), (byte) => alphabet[byte & (alphabet.length - 1)]).join('');
}

/** @throws WebdfsError BAD_CONFIG if the environment names keys that S3 clients could not use */
export function credentialsFrom(environment: Readonly<Record<string, string | undefined>>): Credentials | undefined {
  const accessKeyId = environment['WEBDFS_ACCESS_KEY_ID'];
  const secretAccessKey = environment['WEBDFS_SECRET_ACCESS_KEY'];
  if (accessKeyId === undefined && secretAccessKey === undefined) return undefined;
  if (accessKeyId === undefined || secretAccessKey === undefined) {
    throw new WebdfsError('BAD_CONFIG', 'set both WEBDFS_ACCESS_KEY_ID and WEBDFS_SECRET_ACCESS_KEY, or neither');
  }
  if (!/^[\w.+-]{3,128}$/.test(accessKeyId)) {
    throw new WebdfsError('BAD_CONFIG', 'WEBDFS_ACCESS_KEY_ID takes 3 to 128 letters, digits and . _ + -');
  }
  if (secretAccessKey.length < 8 || secretAccessKey.length > 128) {
    throw new WebdfsError('BAD_CONFIG', 'WEBDFS_SECRET_ACCESS_KEY takes 8 to 128 characters');
  }
  return { accessKeyId, secretAccessKey };
}

/** The secrets kept in a data folder. @throws WebdfsError NOT_FOUND, CORRUPT */
export async function readSecrets(disk: Disk, folder: string): Promise<Secrets> {
  const text = fromUtf8(await readWhole(disk, `${folder}/${FILE}`));
  const value: unknown = JSON.parse(text);
  if (typeof value !== 'object' || value === null)
    throw new WebdfsError('CORRUPT', `${folder}/${FILE} is no JSON object`);
  const read = (name: keyof Secrets): string => {
    const field: unknown = Reflect.get(value, name);
    if (typeof field !== 'string') throw new WebdfsError('CORRUPT', `${folder}/${FILE} lacks ${name}`);
    return field;
  };
  const others = othersIn(Reflect.get(value, 'otherSecrets'));
  return {
    accessKeyId: read('accessKeyId'),
    secretAccessKey: read('secretAccessKey'),
    clusterSecret: read('clusterSecret'),
    ...(others.length === 0 ? {} : { otherSecrets: others }),
    ...namesIn(Reflect.get(value, 'formerNames')),
  };
}

const MAX_OTHERS = 16;

function namesIn(value: unknown): Pick<Secrets, 'formerNames'> {
  if (!Array.isArray(value)) return {};
  return { formerNames: value.filter((name) => typeof name === 'string').slice(-MAX_OTHERS) };
}

/** Those that can be read: one that cannot is one that is accepted no more. */
function othersIn(value: unknown): OtherSecret[] {
  if (!Array.isArray(value)) return [];
  return value.slice(0, MAX_OTHERS).flatMap((other: unknown): OtherSecret[] => {
    if (typeof other !== 'object' || other === null) return [];
    const secret: unknown = Reflect.get(other, 'secret');
    const untilMs: unknown = Reflect.get(other, 'untilMs');
    if (typeof secret !== 'string' || !/^[0-9a-f]{64}$/.test(secret) || typeof untilMs !== 'number') return [];
    return [{ secret, untilMs, ...(Reflect.get(other, 'isNext') === true ? { isNext: true } : {}) }];
  });
}

/** Secrets as `kept` or `given`, the rest drawn. */
export function newSecrets(random: Random, given?: Credentials, kept?: Secrets): Secrets {
  return {
    accessKeyId: given?.accessKeyId ?? kept?.accessKeyId ?? draw(random, KEY_ALPHABET, 20),
    secretAccessKey: given?.secretAccessKey ?? kept?.secretAccessKey ?? draw(random, SECRET_ALPHABET, 40),
    clusterSecret: kept?.clusterSecret ?? toHex(random.bytes(32)),
  };
}

/** Keeps secrets in a data folder. */
export async function saveSecrets(disk: Disk, folder: string, secrets: Secrets): Promise<void> {
  await replaceWhole(disk, folder, FILE, utf8(`${JSON.stringify(secrets, undefined, 2)}\n`));
}

/**
 * The secrets of a data folder, made at the first start. Keys from the environment replace the kept ones, so that the
 * command line finds them beside the data.
 */
export async function keepSecrets(options: {
  disk: Disk;
  folder: string;
  random: Random;
  given: Credentials | undefined;
}): Promise<Secrets> {
  const { disk, folder, random, given } = options;
  const kept = await readSecrets(disk, folder).catch((error: unknown) => {
    if (codeOf(error) === 'NOT_FOUND') return undefined;
    throw error;
  });
  const secrets = newSecrets(random, given, kept);
  if (JSON.stringify(secrets) !== JSON.stringify(kept)) await saveSecrets(disk, folder, secrets);
  return secrets;
}
