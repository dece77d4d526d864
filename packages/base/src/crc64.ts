/*
 * CRC-64/NVME: reflected, polynomial 0xad93d23594c93659, all ones before and after. Eight bytes a step through eight tables; a
 * 64-bit word is two unsigned halves, because BigInt would cost a hundred times as much.
 */
const POLYNOMIAL_HIGH = 0x9a6c9329;
const POLYNOMIAL_LOW = 0xac4bc9b5;
const SLICES = 8;

/** Entry i of table k: high half at (k · 256 + i) · 2, low half behind it. */
const TABLES = makeTables();

function makeTables(): Uint32Array {
  const tables = new Uint32Array(SLICES * 512);
  for (let i = 0; i < 256; i++) {
    let high = 0;
    let low = i;
    for (let bit = 0; bit < 8; bit++) {
      const odd = low & 1;
      low = (low >>> 1) | (high << 31);
      high >>>= 1;
      if (odd === 1) {
        high ^= POLYNOMIAL_HIGH;
        low ^= POLYNOMIAL_LOW;
      }
    }
    tables[i * 2] = high;
    tables[i * 2 + 1] = low;
  }
  for (let at = 512; at < tables.length; at += 2) {
    const high = tables[at - 512]!;
    const low = tables[at - 511]!;
    const carry = (low & 255) * 2;
    tables[at] = (high >>> 8) ^ tables[carry]!;
    tables[at + 1] = ((low >>> 8) | (high << 24)) ^ tables[carry + 1]!;
  }
  return tables;
}

/** A running CRC-64/NVME. Source: NVM Express base specification 2.0, section on 64b CRC. */
export class Crc64Nvme {
  #high = 0xffff_ffff;
  #low = 0xffff_ffff;

  update(bytes: Uint8Array): this {
    let high = this.#high | 0;
    let low = this.#low | 0;
    const whole = bytes.length & ~7;
    for (let at = 0; at < whole; at += 8) {
      low ^= bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24);
      high ^= bytes[at + 4]! | (bytes[at + 5]! << 8) | (bytes[at + 6]! << 16) | (bytes[at + 7]! << 24);
      const a = 3584 + (low & 255) * 2;
      const b = 3072 + ((low >>> 8) & 255) * 2;
      const c = 2560 + ((low >>> 16) & 255) * 2;
      const d = 2048 + (low >>> 24) * 2;
      const e = 1536 + (high & 255) * 2;
      const f = 1024 + ((high >>> 8) & 255) * 2;
      const g = 512 + ((high >>> 16) & 255) * 2;
      const h = (high >>> 24) * 2;
      high = TABLES[a]! ^ TABLES[b]! ^ TABLES[c]! ^ TABLES[d]! ^ TABLES[e]! ^ TABLES[f]! ^ TABLES[g]! ^ TABLES[h]!;
      low =
        TABLES[a + 1]! ^
        TABLES[b + 1]! ^
        TABLES[c + 1]! ^
        TABLES[d + 1]! ^
        TABLES[e + 1]! ^
        TABLES[f + 1]! ^
        TABLES[g + 1]! ^
        TABLES[h + 1]!;
    }
    for (let at = whole; at < bytes.length; at++) {
      const i = ((low ^ bytes[at]!) & 255) * 2;
      low = ((low >>> 8) | (high << 24)) ^ TABLES[i + 1]!;
      high = (high >>> 8) ^ TABLES[i]!;
    }
    this.#high = high;
    this.#low = low;
    return this;
  }

  /** The CRC of all bytes so far, eight bytes, big-endian: as S3 writes it before base64. More may follow. */
  digest(): Uint8Array {
    const bytes = new Uint8Array(8);
    const view = new DataView(bytes.buffer);
    view.setUint32(0, ~this.#high >>> 0);
    view.setUint32(4, ~this.#low >>> 0);
    return bytes;
  }
}
