import type { Command } from '../command.ts';
import { benchBlog2009 } from './bench/blog-2009.ts';
import { benchErasureCommand } from './bench/erasure.ts';
import { benchObject } from './bench/object.ts';
import { benchPlacementCommand } from './bench/placement.ts';
import { benchRescaleCommand } from './bench/rescale.ts';

/** One command per benchmark, each with a file of its own; `webdfs bench` lists them. */
export const benchmarks: readonly Command[] = [
  benchBlog2009,
  benchErasureCommand,
  benchObject,
  benchPlacementCommand,
  benchRescaleCommand,
];
