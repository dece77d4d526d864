import type { Command } from '../command.ts';
import { benchErasureCommand } from './bench/erasure.ts';
import { benchObject } from './bench/object.ts';
import { benchPlacementCommand } from './bench/placement.ts';
import { benchRescaleCommand } from './bench/rescale.ts';

/** One command per benchmark, each with a file of its own; `webdfs bench` lists them. */
export const benchmarks: readonly Command[] = [
  benchErasureCommand,
  benchObject,
  benchPlacementCommand,
  benchRescaleCommand,
];
