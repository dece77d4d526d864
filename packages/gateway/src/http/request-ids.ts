import type { Random } from '@webdfs/base';
import { toHex } from '@webdfs/base';

/** Request ids: eight digits drawn once a process, eight that count. Unique without drawing chance for each request. */
export class RequestIds {
  readonly #prefix: string;
  #count = 0;

  constructor(random: Random) {
    this.#prefix = toHex(random.bytes(4)).toUpperCase();
  }

  next(): string {
    this.#count = (this.#count + 1) % 0x1_0000_0000;
    return this.#prefix + (0x1_0000_0000 + this.#count).toString(16).slice(1).toUpperCase();
  }
}
