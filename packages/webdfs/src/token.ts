import { createHash } from 'node:crypto';
import { fromHex, fromUtf8, WebdfsError } from '@webdfs/base';
import type { Secrets } from './credentials.ts';

/**
 * What a machine must know to join a cluster, as one word: the cluster's secret and its owner's keys. Whoever has it can be
 * any node, so it is handed over like a password, and lies in no map store.
 */

const PREFIX = 'webdfs1.';
const MAX_CHARACTERS = 2_048;

export function tokenOf(secrets: Secrets): string {
  const { clusterSecret, accessKeyId, secretAccessKey } = secrets;
  return PREFIX + Buffer.from(JSON.stringify([clusterSecret, accessKeyId, secretAccessKey])).toString('base64url');
}

/** @throws BAD_CONFIG, without repeating the token */
export function secretsOf(token: string): Secrets {
  const word = token.trim();
  const refuse = (): never => {
    throw new WebdfsError('BAD_CONFIG', 'that is no whole token: take all of what "webdfs cluster token" prints');
  };
  if (!word.startsWith(PREFIX) || word.length > MAX_CHARACTERS) return refuse();
  let fields: unknown;
  try {
    fields = JSON.parse(fromUtf8(Buffer.from(word.slice(PREFIX.length), 'base64url')));
  } catch {
    return refuse();
  }
  if (!Array.isArray(fields) || fields.length !== 3 || !fields.every((field) => typeof field === 'string')) {
    return refuse();
  }
  const [clusterSecret, accessKeyId, secretAccessKey] = fields as [string, string, string];
  if (!/^[0-9a-f]{64}$/.test(clusterSecret)) return refuse();
  return { clusterSecret, accessKeyId, secretAccessKey };
}

/** Which secret it is, telling nothing about it: the first 8 bytes of its SHA-256, as hex. */
export function secretName({ clusterSecret }: Pick<Secrets, 'clusterSecret'>): string {
  return createHash('sha256').update(fromHex(clusterSecret)).digest('hex').slice(0, 16);
}
