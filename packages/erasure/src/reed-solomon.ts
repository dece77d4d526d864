import { WebdfsError } from '@webdfs/base/errors';
import { type CodeName, CODES, type Code, parityMatrix } from './code.ts';
import type { Kernel } from './kernel.ts';
import { LinearMap, type Source } from './linear-map.ts';
import type { Matrix } from './matrix.ts';
import { planRepair, type RepairPlan } from './repair-plan.ts';
import { StreamEncoder } from './stream-encoder.ts';

export interface ReedSolomonOptions {
  readonly kernel: Kernel;
  /** Data shards, from 1 to the code's limit (32). */
  readonly data: number;
  /** Parity shards, from 1 to the code's limit (8): so many losses can be repaired. */
  readonly parity: number;
  /** Default `cauchy`. */
  readonly code?: CodeName;
}

/** Plans that are remembered, by what is lost and what is read; the oldest is forgotten. */
const MOST_PLANS = 64;
/** `verify` compares so many bytes of every shard at a time. */
const VERIFY_BYTES = 16_384;

/**
 * A systematic Reed-Solomon code: `data` shards as they are, and `parity` shards from which any `parity` lost ones, of either
 * kind, can be made again. Shards are numbered data first: 0 … data − 1, then parity.
 *
 * Shards are blocks of bytes. Parity shards have one length, a multiple of the code's symbol (1 byte, 2 in GF(2^16)); data shards may
 * be shorter, or undefined, and count as padded with zeros. Parity repairs what is known to be lost; it does not find what is
 * wrong: give every shard a checksum, and treat a shard that fails it as lost.
 *
 * Source: Reed and Solomon, "Polynomial codes over certain finite fields", 1960; in Cauchy form Blömer et al., "An XOR-based
 * erasure-resilient coding scheme", ICSI TR-95-048, 1995.
 */
export class ReedSolomon {
  readonly data: number;
  readonly parity: number;
  readonly code: Code;
  readonly #kernel: Kernel;
  readonly #matrix: Matrix;
  readonly #encoder: LinearMap;
  readonly #rows: LinearMap[] = [];
  readonly #plans = new Map<string, RepairPlan>();
  #syndrome: LinearMap | undefined;

  /** @throws WebdfsError INVALID if the numbers are not within the code's limits */
  constructor({ kernel, data, parity, code = 'cauchy' }: ReedSolomonOptions) {
    const chosen: Code | undefined = CODES[code];
    if (chosen === undefined) throw new WebdfsError('INVALID', `no code is called '${code as string}'`);
    checkCount('data', data, chosen.maxData);
    checkCount('parity', parity, chosen.maxParity);
    this.code = chosen;
    this.data = data;
    this.parity = parity;
    this.#kernel = kernel;
    this.#matrix = parityMatrix(chosen, data, parity);
    this.#encoder = new LinearMap(kernel, chosen.field, this.#matrix);
  }

  /** Bytes that parity has for data shards of at most so many. */
  parityBytes(dataBytes: number): number {
    const { symbolBytes } = this.code.field;
    return Math.ceil(dataBytes / symbolBytes) * symbolBytes;
  }

  /**
   * Fills the parity shards; those that are undefined are left out.
   * @throws WebdfsError INVALID if blocks are missing, of wrong lengths, or overlap
   */
  encode(data: readonly Source[], parity: readonly Source[]): void {
    this.#eachMap(parity, (map, targets) => map.apply(data, targets));
  }

  /**
   * Brings the parity up to date after data shard `index` changed, without the other shards; parity shards that are undefined are
   * left out. The same delta once more undoes it.
   *
   * @param delta old XOR new, both padded with zeros to the longer
   * @throws WebdfsError INVALID if there is no such shard, the delta is longer than the parity, or overlaps it
   */
  update(index: number, delta: Uint8Array, parity: readonly Source[]): void {
    this.#eachMap(parity, (map, targets) => map.add(index, delta, targets));
  }

  /** An encoder for data shards that arrive in pieces; it owns the `parity` blocks until all are written. */
  stream(parity: readonly Uint8Array[]): StreamEncoder {
    return new StreamEncoder(this.#encoder, this.data, parity);
  }

  /**
   * How to make the shards in `lost` from those in `available` (default: all others). Plans are remembered.
   * @throws WebdfsError LOST if fewer than `data` shards are available; INVALID if a number is no shard's
   */
  plan(lost: readonly number[], available: readonly number[] = this.#others(lost)): RepairPlan {
    for (const shard of [...lost, ...available]) this.#checkShard(shard);
    const wanted = [...new Set(lost)].toSorted((a, b) => a - b);
    const usable = [...new Set(available)].filter((shard) => !wanted.includes(shard));
    const key = `${wanted.join()}:${usable.toSorted((a, b) => a - b).join()}`;
    const known = this.#plans.get(key);
    if (known !== undefined) return known;
    const plan = planRepair({
      code: this.code,
      kernel: this.#kernel,
      data: this.data,
      parity: this.#matrix,
      lost: wanted,
      available: usable,
    });
    if (this.#plans.size >= MOST_PLANS) this.#plans.delete(this.#plans.keys().next().value!);
    this.#plans.set(key, plan);
    return plan;
  }

  /**
   * All shards, the undefined ones made again in fresh memory, as long as the longest shard given.
   * @param shards data, then parity
   * @throws WebdfsError LOST if more than `parity` are undefined; INVALID if there are not `data + parity` places
   */
  decode(shards: readonly Source[]): Uint8Array[] {
    this.#checkShards(shards);
    const plan = this.plan(shards.flatMap((shard, i) => (shard === undefined ? [i] : [])));
    const bytes = this.parityBytes(shards.reduce((most, shard) => Math.max(most, shard?.length ?? 0), 0));
    const made = plan.lost.map(() => new Uint8Array(bytes));
    plan.repair(
      plan.reads.map((shard) => shards[shard]),
      made,
    );
    const whole = shards.slice();
    for (const [i, shard] of plan.lost.entries()) whole[shard] = made[i]!;
    return whole as Uint8Array[];
  }

  /**
   * True if the parity is that of the data.
   * @param shards data, then parity
   * @throws WebdfsError INVALID if there are not `data + parity` shards, or of wrong lengths
   */
  verify(shards: readonly Source[]): boolean {
    this.#checkShards(shards);
    const bytes = shards[this.data]?.length ?? 0;
    for (const [i, shard] of shards.entries()) {
      const length = shard?.length ?? 0;
      if (length > bytes || (i >= this.data && length !== bytes)) {
        throw new WebdfsError('INVALID', `shard ${i} has ${length} bytes, the parity has ${bytes}`);
      }
    }
    this.#syndrome ??= new LinearMap(this.#kernel, this.code.field, syndromeMatrix(this.#matrix));
    const sums = this.#matrix.map(() => new Uint8Array(VERIFY_BYTES));
    for (let from = 0; from < bytes; from += VERIFY_BYTES) {
      const to = Math.min(bytes, from + VERIFY_BYTES);
      const targets = sums.map((sum) => sum.subarray(0, to - from));
      this.#syndrome.apply(
        shards.map((shard) => shard?.subarray(from, to)),
        targets,
      );
      if (!targets.every((sum) => this.#kernel.isZero(sum))) return false;
    }
    return true;
  }

  /** All parity in one pass, or row by row where some is left out. */
  #eachMap(parity: readonly Source[], use: (map: LinearMap, targets: readonly Uint8Array[]) => void): void {
    if (parity.length !== this.parity) {
      throw new WebdfsError('INVALID', `${parity.length} parity shards, expected ${this.parity}`);
    }
    if (parity.every((shard) => shard !== undefined)) {
      use(this.#encoder, parity);
      return;
    }
    for (const [p, shard] of parity.entries()) {
      if (shard === undefined) continue;
      this.#rows[p] ??= new LinearMap(this.#kernel, this.code.field, [this.#matrix[p]!]);
      use(this.#rows[p], [shard]);
    }
  }

  #others(lost: readonly number[]): number[] {
    return Array.from({ length: this.data + this.parity }, (_, i) => i).filter((shard) => !lost.includes(shard));
  }

  #checkShard(shard: number): void {
    if (!Number.isInteger(shard) || shard < 0 || shard >= this.data + this.parity) {
      throw new WebdfsError('INVALID', `there is no shard ${shard}, only 0 to ${this.data + this.parity - 1}`);
    }
  }

  #checkShards(shards: readonly Source[]): void {
    if (shards.length !== this.data + this.parity) {
      throw new WebdfsError('INVALID', `${shards.length} shards, expected ${this.data} + ${this.parity}`);
    }
  }
}

function checkCount(what: string, count: number, most: number): void {
  if (!Number.isInteger(count) || count < 1 || count > most) {
    throw new WebdfsError('INVALID', `${count} ${what} shards; this code has 1 to ${most}`);
  }
}

/** `[P I]`: what it makes of data and parity together is 0 if they fit. */
function syndromeMatrix(parity: Matrix): number[][] {
  return parity.map((row, p) => [...row, ...parity.map((_, column) => (column === p ? 1 : 0))]);
}
