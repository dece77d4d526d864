/** CRC-64/NVME: reflected polynomial 0x9a6c9329ac4bc9b5, both ends inverted (NVM Express base specification, 5.2.1.3.4). */
const LOW = new Uint32Array(256);
const HIGH = new Uint32Array(256);
for (let byte = 0; byte < 256; byte++) {
  let crc = BigInt(byte);
  for (let bit = 0; bit < 8; bit++) crc = (crc & 1n) === 1n ? (crc >> 1n) ^ 0x9a6c9329ac4bc9b5n : crc >> 1n;
  LOW[byte] = Number(crc & 0xffffffffn);
  HIGH[byte] = Number(crc >> 32n);
}

export class Crc64Nvme {
  #low = 0xffffffff;
  #high = 0xffffffff;

  update(bytes: Uint8Array): void {
    let low = this.#low;
    let high = this.#high;
    for (let i = 0; i < bytes.length; i++) {
      const index = (low ^ bytes[i]!) & 255;
      low = ((low >>> 8) | (high << 24)) ^ LOW[index]!;
      high = (high >>> 8) ^ HIGH[index]!;
    }
    this.#low = low;
    this.#high = high;
  }

  digest(): bigint {
    return (BigInt(~this.#high >>> 0) << 32n) | BigInt(~this.#low >>> 0);
  }
}
