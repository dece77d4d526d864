import { createHash } from 'node:crypto';
import { crc32 } from 'node:zlib';
import { concat, Crc64Nvme, crc32c, WebdfsError } from '@webdfs/base';
import { combineCrcs, CRC_KINDS, type CrcKind } from './crc-combine.ts';

/** The checksums that S3 knows, by the names the facts of an object use, with their length in bytes. */
const CHECKSUM_BYTES = { crc32: 4, crc32c: 4, crc64nvme: 8, sha1: 20, sha256: 32 } as const;
export type ChecksumName = keyof typeof CHECKSUM_BYTES;
export type ChecksumType = 'COMPOSITE' | 'FULL_OBJECT';

export function isChecksumName(name: string): name is ChecksumName {
  return Object.hasOwn(CHECKSUM_BYTES, name);
}

/** The kind of CRC behind a name, undefined for a hash. */
function crcKind(name: ChecksumName): CrcKind | undefined {
  return name === 'sha1' || name === 'sha256' ? undefined : CRC_KINDS[name];
}

/** What S3 takes where the client names no type. */
export function defaultType(name: ChecksumName): ChecksumType {
  return name === 'crc64nvme' ? 'FULL_OBJECT' : 'COMPOSITE';
}

/** @throws INVALID for a pair that S3 does not know */
export function checkChecksum(name: string, type: string): asserts name is ChecksumName {
  const known = isChecksumName(name) && (type === 'COMPOSITE' || type === 'FULL_OBJECT');
  if (known && (type === 'COMPOSITE' ? name !== 'crc64nvme' : crcKind(name) !== undefined)) return;
  throw new WebdfsError('INVALID', `there is no ${type} checksum ${name}`, { details: { what: 'checksum' } });
}

function bytesOf(base64: string, name: ChecksumName): Uint8Array {
  const bytes = new Uint8Array(Buffer.from(base64, 'base64'));
  if (bytes.length === CHECKSUM_BYTES[name]) return bytes;
  throw new WebdfsError('INVALID', `${name} has ${CHECKSUM_BYTES[name]} bytes, not ${bytes.length}`, {
    details: { what: 'checksum' },
  });
}

/** A checksum that grows with the bytes. */
export interface RunningChecksum {
  update(bytes: Uint8Array): void;
  digest(): Uint8Array;
}

function running32(step: (bytes: Uint8Array, seed: number) => number): RunningChecksum {
  let value = 0;
  return {
    update(bytes) {
      value = step(bytes, value);
    },
    digest: () => Uint8Array.of(value >>> 24, value >>> 16, value >>> 8, value),
  };
}

export function runningChecksum(name: ChecksumName): RunningChecksum {
  switch (name) {
    case 'crc32':
      return running32(crc32);
    case 'crc32c':
      return running32(crc32c);
    case 'crc64nvme': {
      const crc = new Crc64Nvme();
      return { update: (bytes) => void crc.update(bytes), digest: () => crc.digest() };
    }
    case 'sha1':
    case 'sha256': {
      const running = createHash(name);
      return { update: (bytes) => void running.update(bytes), digest: () => new Uint8Array(running.digest()) };
    }
  }
}

function digestOf(name: ChecksumName, bytes: Uint8Array): Uint8Array {
  const running = runningChecksum(name);
  running.update(bytes);
  return running.digest();
}

/**
 * The checksum of an object made of parts, as S3 writes it: COMPOSITE is the checksum of the parts' checksums, with their
 * number behind a hyphen; FULL_OBJECT is that of all bytes, combined from the parts'.
 *
 * @param parts  base64 of each part's checksum, and its size
 * @throws INVALID if one has not the right length
 */
export function wholeChecksum(
  name: ChecksumName,
  type: ChecksumType,
  parts: readonly { readonly checksum: string; readonly size: number }[],
): string {
  const bytes = parts.map(({ checksum }) => bytesOf(checksum, name));
  const kind = crcKind(name);
  if (type === 'COMPOSITE' || kind === undefined) {
    return `${Buffer.from(digestOf(name, concat(bytes))).toString('base64')}-${parts.length}`;
  }
  const pieces = bytes.map((part, i) => ({
    crc: BigInt(`0x${Buffer.from(part).toString('hex')}`),
    size: parts[i]!.size,
  }));
  const whole = combineCrcs(kind, pieces)
    .toString(16)
    .padStart(kind.bits / 4, '0');
  return Buffer.from(whole, 'hex').toString('base64');
}
