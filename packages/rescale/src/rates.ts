import type { NodeId } from '@webdfs/base';

/** What one node's hardware does, bytes per second. A resource that is no constraint is `Infinity`. */
export interface Rates {
  /** Each way: full duplex. */
  readonly network: number;
  /** Reading `a` and writing `b` bytes takes the device `a / read + b / write`: it does one at a time. */
  readonly read: number;
  readonly write: number;
}

export type RatesOf = (node: NodeId) => Rates;

/** What limits the use of a node's rates. */
export interface Throttle {
  /** The share of each rate that a rescale may take, 0 to 1; 1 if left out. */
  readonly share?: number;
  /** Most bytes per second each way over the network. */
  readonly cap?: number;
  /** What clients take meanwhile. */
  readonly foreground?: Partial<Rates>;
}

/** What a throttle and the clients leave of a node's rates; never negative. */
export function throttledRates(rates: Rates, { share = 1, cap = Infinity, foreground = {} }: Throttle): Rates {
  const left = (rate: number, taken = 0): number => Math.max(0, rate - taken) * share;
  return {
    network: Math.min(cap, left(rates.network, foreground.network)),
    read: left(rates.read, foreground.read),
    write: left(rates.write, foreground.write),
  };
}

/** Seconds for some bytes; none take none, whatever the rate. */
export function secondsFor(bytes: number, rate: number): number {
  return bytes === 0 ? 0 : bytes / rate;
}
