import { createHash } from 'node:crypto';
import { crc32 } from 'node:zlib';
import { crc32c, Crc64Nvme } from '@webdfs/base';
import type { Headers } from '../http/headers.ts';
import { Refusal } from '../refusal.ts';

/** The checksums that S3 knows, by the names of its headers. */
const CHECKSUM_BYTES = { crc32: 4, crc32c: 4, crc64nvme: 8, sha1: 20, sha256: 32 } as const;
export type ChecksumAlgorithm = keyof typeof CHECKSUM_BYTES;
export const CHECKSUM_ALGORITHMS = Object.keys(CHECKSUM_BYTES) as readonly ChecksumAlgorithm[];

/** A checksum that grows with the bytes. */
export interface RunningChecksum {
  update(bytes: Uint8Array): void;
  /** Base64 of the big-endian digest. */
  digest(): string;
}

function base64Of32(value: number): string {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value >>> 0);
  return bytes.toString('base64');
}

function running32(step: (bytes: Uint8Array, seed: number) => number): RunningChecksum {
  let value = 0;
  return {
    update: (bytes) => {
      value = step(bytes, value);
    },
    digest: () => base64Of32(value),
  };
}

export function runningChecksum(algorithm: ChecksumAlgorithm): RunningChecksum {
  switch (algorithm) {
    case 'crc32':
      return running32((bytes, seed) => crc32(bytes, seed));
    case 'crc32c':
      return running32((bytes, seed) => crc32c(bytes, seed));
    case 'crc64nvme':
      return running64();
    case 'sha1':
    case 'sha256': {
      const digest = createHash(algorithm);
      return {
        update: (bytes) => {
          digest.update(bytes);
        },
        digest: () => digest.digest('base64'),
      };
    }
  }
}

function running64(): RunningChecksum {
  const crc = new Crc64Nvme();
  return {
    update: (bytes) => {
      crc.update(bytes);
    },
    digest: () => Buffer.from(crc.digest()).toString('base64'),
  };
}

export function asAlgorithm(name: string): ChecksumAlgorithm | undefined {
  return CHECKSUM_ALGORITHMS.find((algorithm) => algorithm === name.toLowerCase());
}

/** Whether a text is the Base64 of as many bytes as the algorithm gives. */
export function isChecksum(algorithm: ChecksumAlgorithm, value: string): boolean {
  const bytes = Buffer.from(value, 'base64');
  return bytes.length === CHECKSUM_BYTES[algorithm] && bytes.toString('base64') === value;
}

export interface DeclaredChecksum {
  readonly algorithm: ChecksumAlgorithm;
  /** Base64; undefined: it comes in the trailer. */
  readonly value: string | undefined;
}

const PREFIX = 'x-amz-checksum-';
/** Headers of the same prefix that are no values. */
const NOT_VALUES = new Set(['x-amz-checksum-algorithm', 'x-amz-checksum-mode', 'x-amz-checksum-type']);

/** Names of the trailers that a request announces, lower case. */
export function announcedTrailers(headers: Headers): readonly string[] {
  const names = headers.get('x-amz-trailer');
  if (names === undefined) return [];
  return names
    .split(',')
    .map((name) => name.trim().toLowerCase())
    .filter((name) => name !== '');
}

/**
 * The checksum that comes with a body, in a header or announced for the trailer.
 *
 * @throws Refusal InvalidRequest for two of them, for a value of a wrong length, for one that was promised and is not there
 */
export function declaredChecksum(headers: Headers): DeclaredChecksum | undefined {
  const found: DeclaredChecksum[] = [];
  for (const [name, value] of headers) {
    if (!name.startsWith(PREFIX) || NOT_VALUES.has(name)) continue;
    found.push(declared(name, value));
  }
  for (const name of announcedTrailers(headers)) if (name.startsWith(PREFIX)) found.push(declared(name, undefined));
  if (found.length > 1) throw new Refusal('InvalidRequest', 'More than one checksum came with the body.');
  const [only] = found;
  const promised = headers.get('x-amz-sdk-checksum-algorithm');
  if (promised !== undefined && asAlgorithm(promised) !== only?.algorithm) {
    throw new Refusal('InvalidRequest', 'x-amz-sdk-checksum-algorithm names a checksum that did not come.');
  }
  return only;
}

function declared(name: string, value: string | undefined): DeclaredChecksum {
  const algorithm = asAlgorithm(name.slice(PREFIX.length));
  if (algorithm === undefined) throw new Refusal('InvalidRequest', `The checksum ${name.slice(0, 64)} is not known.`);
  if (value !== undefined) checkValue(algorithm, value);
  return { algorithm, value };
}

/** @throws Refusal InvalidRequest if the value is not a checksum of this kind */
export function checkValue(algorithm: ChecksumAlgorithm, value: string): void {
  if (!isChecksum(algorithm, value)) {
    throw new Refusal('InvalidRequest', `The value of ${PREFIX}${algorithm} is not the Base64 of a checksum.`);
  }
}
