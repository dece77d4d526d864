import type { Command } from '../command.ts';
import { clusterInit } from './cluster/init.ts';
import { clusterToken } from './cluster/token.ts';

/** One command a file; `webdfs cluster` lists them. */
export const clusterCommands: readonly Command[] = [clusterInit, clusterToken];
