import type { Command } from '../command.ts';
import { clusterAdd, clusterReplace, plainChanges } from './cluster/change.ts';
import { clusterExport } from './cluster/export.ts';
import { clusterImport } from './cluster/import.ts';
import { clusterInit } from './cluster/init.ts';
import { clusterOutAfter } from './cluster/out-after.ts';
import { clusterRescale } from './cluster/rescale.ts';
import { clusterRescue, clusterSurvey } from './cluster/rescue.ts';
import { clusterSetPolicy } from './cluster/set-policy.ts';
import { clusterToken } from './cluster/token.ts';
import { clusterUsage } from './cluster/usage.ts';

/** One command a file; `webdfs cluster` lists them. */
export const clusterCommands: readonly Command[] = [
  clusterInit,
  clusterToken,
  clusterUsage,
  clusterExport,
  clusterImport,
  clusterRescue,
  clusterSurvey,
  clusterAdd,
  ...plainChanges,
  clusterReplace,
  clusterSetPolicy,
  clusterRescale,
  clusterOutAfter,
];
