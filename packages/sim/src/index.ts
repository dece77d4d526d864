export { type RunOptions, type RunReport, runSeed } from './run.ts';
