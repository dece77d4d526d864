import { assert, crc32c, type Disk, toHex, WebdfsError } from '@webdfs/base';

/**
 * Head of a volume file, 64 bytes at 0, little-endian. docs/formats/volume.md has a worked example.
 *
 * ```
 * offset  size  field
 *      0     8  magic     WDFSVOL1
 *      8     2  format    1
 *     10     1  lane      0 log, 1 bulk, 2 output of compaction
 *     11     1  zero
 *     12     4  volume    equals the number in the file's name
 *     16     4  salt      random; seed of every head checksum in the file
 *     20     4  crcUnit   65 536
 *     24    16  storeId
 *     40     8  madeAt    ms since 1970, information only
 *     48    12  zero
 *     60     4  checksum  CRC-32C of bytes 0..59
 * ```
 */
export interface VolumeHead {
  readonly lane: LaneNumber;
  readonly volume: number;
  readonly salt: number;
  /** 32 hex digits. */
  readonly storeId: string;
  readonly madeAtMs: number;
}

export const LANE = { LOG: 0, BULK: 1, COMPACTED: 2 } as const;
export type LaneNumber = (typeof LANE)[keyof typeof LANE];

export const VOLUME_FORMAT = 1;
export const VOLUME_HEAD_BYTES = 64;

const MAGIC = 'WDFSVOL1';
const CRC_UNIT = 65_536;

export function packVolumeHead(head: VolumeHead): Uint8Array {
  assert(head.storeId.length === 32, 'a store id has 32 hex digits');
  const bytes = Buffer.alloc(VOLUME_HEAD_BYTES);
  bytes.write(MAGIC, 0, 'latin1');
  bytes.writeUInt16LE(VOLUME_FORMAT, 8);
  bytes.writeUInt8(head.lane, 10);
  bytes.writeUInt32LE(head.volume, 12);
  bytes.writeUInt32LE(head.salt, 16);
  bytes.writeUInt32LE(CRC_UNIT, 20);
  bytes.write(head.storeId, 24, 'hex');
  bytes.writeBigUInt64LE(BigInt(Math.floor(head.madeAtMs)), 40);
  bytes.writeUInt32LE(crc32c(bytes.subarray(0, 60)), 60);
  return bytes;
}

/**
 * Reads the head of the file of volume `volume`; undefined if these bytes are no valid head of it (torn, rotten, or another's).
 *
 * @throws WebdfsError NEWER_FORMAT if the head is whole but of a format this program does not know
 */
export function unpackVolumeHead(source: Uint8Array, volume: number, storeId: string): VolumeHead | undefined {
  if (source.length < VOLUME_HEAD_BYTES) return undefined;
  const bytes = Buffer.from(source.buffer, source.byteOffset, VOLUME_HEAD_BYTES);
  if (bytes.toString('latin1', 0, 8) !== MAGIC || bytes.readUInt32LE(60) !== crc32c(bytes.subarray(0, 60)))
    return undefined;
  const format = bytes.readUInt16LE(8);
  if (format > VOLUME_FORMAT) {
    throw new WebdfsError(
      'NEWER_FORMAT',
      `volume ${volume} has format ${format}, this program knows ${VOLUME_FORMAT}: upgrade the node`,
    );
  }
  const lane = bytes.readUInt8(10);
  if (bytes.readUInt32LE(12) !== volume || lane > LANE.COMPACTED) return undefined;
  const owner = toHex(bytes.subarray(24, 40));
  if (owner !== storeId || bytes.readUInt32LE(20) !== CRC_UNIT) return undefined;
  const madeAtMs = Number(bytes.readBigUInt64LE(40));
  return { lane: lane as LaneNumber, volume, salt: bytes.readUInt32LE(16), storeId: owner, madeAtMs };
}

/** `00000012.vol`: at least eight digits. */
export function volumeFileName(volume: number): string {
  return `${String(volume).padStart(8, '0')}.vol`;
}

/** The number in a volume's file name, undefined for any other name. */
export function volumeOfFileName(name: string): number | undefined {
  const match = /^(\d{8,10})\.vol$/.exec(name);
  if (match === null) return undefined;
  const volume = Number(match[1]);
  return volumeFileName(volume) === name && volume <= 0xffff_ffff ? volume : undefined;
}

/** Ids of the volume files in a folder, ascending. */
export async function listVolumes(disk: Disk, folder: string): Promise<number[]> {
  const ids = (await disk.list(folder)).map(volumeOfFileName).filter((id) => id !== undefined);
  return ids.toSorted((a, b) => a - b);
}
