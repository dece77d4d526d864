import { fork } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import { type LogLevel, SystemRandom, systemClock } from '@webdfs/base';
import { type RunOptions, type RunReport, runSeed } from './run.ts';
import { isSeamMutant, MUTANTS } from './mutants.ts';
import { isSourceMutant, type SourceMutant, SOURCE_MUTANTS } from './source-mutants.ts';
import { FAULTS, type Fault } from './weather.ts';

const USAGE = `npm run sim -- [--seed N | --first-seed N] [--seeds COUNT | --minutes M] [options]

A cluster of real nodes on simulated clocks, disks and networks, in bad weather; one seed is one run, the same every time.
Without --seeds or --minutes, 100 seeds from a fresh one on.

  --seed N         this one, with its whole transcript
  --first-seed N   begin here
  --seeds COUNT    so many
  --minutes M      for so long
  --jobs N         processes side by side; as many as there are processors
  --bad-ms MS      how long the weather is bad (12000)
  --faults A,B     only these: ${FAULTS.join(' ')}
  --with A,B       these as well as those that the seed chooses
  --mutant NAME    with a rule of the protocol taken out, to see whether it is missed; ends at the first failure
  --mutants        all of them, each with the seed that is known to see it
  --log LEVEL      lines of the nodes in the transcript: debug, info, warn, error
`;

type Request = Omit<RunOptions, 'seed' | 'tell'> & { readonly badMs: number; readonly logLevel: LogLevel };

const BAD_MS = 12_000;

const { values } = parseArgs({
  options: {
    seed: { type: 'string' },
    'first-seed': { type: 'string' },
    seeds: { type: 'string' },
    minutes: { type: 'string' },
    jobs: { type: 'string' },
    'bad-ms': { type: 'string' },
    mutant: { type: 'string' },
    mutants: { type: 'boolean', default: false },
    faults: { type: 'string' },
    with: { type: 'string' },
    log: { type: 'string', default: 'info' },
    help: { type: 'boolean', short: 'h', default: false },
    worker: { type: 'boolean', default: false },
  },
});

function numberOf(name: 'seed' | 'first-seed' | 'seeds' | 'minutes' | 'jobs' | 'bad-ms'): number | undefined {
  const value = values[name];
  if (value === undefined) return undefined;
  const number = Number(value);
  if (value !== '' && Number.isFinite(number) && number >= 0) return number;
  process.stderr.write(`--${name} takes a number, got ${value}\n`);
  process.exit(2);
}

function faultsOf(text: string): Fault[] {
  const words = text.split(',');
  const unknown = words.find((word) => !(FAULTS as readonly string[]).includes(word));
  if (unknown === undefined) return words as Fault[];
  process.stderr.write(`there is no fault ${unknown}; there are ${FAULTS.join(', ')}\n`);
  process.exit(2);
}

/** What a mutant is run with, unless it is said otherwise. */
function mutantOf(name: string | undefined): Partial<Request> {
  if (name === undefined) return {};
  if (isSeamMutant(name)) return MUTANTS[name];
  if (isSourceMutant(name)) {
    const { faults, badMs, alone = false }: SourceMutant = SOURCE_MUTANTS[name];
    return alone ? { faults, badMs } : { moreFaults: faults, badMs };
  }
  const names = [...Object.keys(MUTANTS), ...Object.keys(SOURCE_MUTANTS)];
  process.stderr.write(`there is no mutant ${name}; there are\n  ${names.join('\n  ')}\n`);
  process.exit(2);
}

function requestOf(): Request {
  const badMs = numberOf('bad-ms');
  return {
    badMs: BAD_MS,
    ...mutantOf(values.mutant),
    ...(badMs === undefined ? {} : { badMs }),
    logLevel: values.log as LogLevel,
    ...(values.faults === undefined ? {} : { faults: faultsOf(values.faults) }),
    ...(values.with === undefined ? {} : { moreFaults: faultsOf(values.with) }),
  };
}

/** A process of its own that runs the seeds it is sent. */
function work(): void {
  process.on('message', (seed: number) => {
    void runSeed({ seed, ...requestOf() }).then((report) => process.send!(report));
  });
}

function lineOf({ seed, digest, happened, simulatedMs, operations, unknown, faults }: RunReport): string {
  const seconds = (simulatedMs / 1_000).toFixed(1);
  return `seed ${seed}: ${digest}, ${happened} happenings in ${seconds} s, ${operations} operations (${unknown} unknown), ${faults} faults`;
}

async function one(seed: number): Promise<number> {
  const report = await runSeed({ seed, ...requestOf(), tell: (line) => process.stdout.write(`${line}\n`) });
  process.stdout.write(`${lineOf(report)}\n`);
  if (report.failure !== undefined) process.stdout.write(`FAILED: ${report.failure.message}\n`);
  return report.failure === undefined ? 0 : 1;
}

/** Hands out seeds to processes until they are all run, or time is up. */
async function many(first: number, count: number, minutes: number): Promise<number> {
  const until = systemClock.monotonic() + minutes * 60_000;
  const totals = { seeds: 0, failed: 0, operations: 0, unknown: 0, faults: 0, simulatedMs: 0 };
  let next = first;
  const jobs = Math.max(1, Math.min(numberOf('jobs') ?? availableParallelism(), count));
  const took = (report: RunReport): void => {
    totals.seeds += 1;
    totals.operations += report.operations;
    totals.unknown += report.unknown;
    totals.faults += report.faults;
    totals.simulatedMs += report.simulatedMs;
    if (report.failure !== undefined) {
      totals.failed += 1;
      if (values.mutant !== undefined) next = Infinity;
      process.stdout.write(`${lineOf(report)}\n  FAILED: ${report.failure.message}\n`);
      process.stdout.write(
        `  replay: npm run sim -- --seed ${report.seed} ${process.argv.slice(2).filter(isKept).join(' ')}\n`,
      );
    } else if (totals.seeds % 50 === 0) process.stdout.write(`${totals.seeds} seeds, ${totals.failed} failed\n`);
  };
  const run = (): Promise<void> =>
    new Promise((resolve, reject) => {
      const child = fork(SELF, ['--worker', ...process.argv.slice(2)], { execArgv: process.execArgv });
      const ask = (): void => {
        if (next >= first + count || systemClock.monotonic() > until) child.disconnect();
        else child.send(next++);
      };
      child.on('message', (report) => {
        took(report as RunReport);
        ask();
      });
      child.on('exit', (code) => (code === 0 ? resolve() : reject(new Error(`a worker ended with ${code}`))));
      ask();
    });
  await Promise.all(Array.from({ length: jobs }, run));
  process.stdout.write(`${JSON.stringify({ firstSeed: first, ...totals })}\n`);
  return totals.failed === 0 ? 0 : 1;
}

/** Options that a replay needs too. */
function isKept(word: string, index: number, words: readonly string[]): boolean {
  const name = word.startsWith('--') ? word : (words[index - 1] ?? '');
  return /^--(bad-ms|faults|with|mutant)(=|$)/.test(name);
}

const SELF = import.meta.filename;

/** This program with other options, or with its modules changed. @returns its exit code */
async function again(options: readonly string[], nodeOptions: readonly string[] = []): Promise<number> {
  const child = fork(SELF, options, { execArgv: [...process.execArgv, ...nodeOptions], stdio: 'inherit' });
  return await new Promise((resolve) => child.on('exit', (code) => resolve(code ?? 1)));
}

/** Whether each mutant that a seed is known to see is seen by it still. */
async function allMutants(): Promise<number> {
  let missed = 0;
  for (const [name, { rule, seenBy }] of Object.entries<SourceMutant>(SOURCE_MUTANTS)) {
    if (seenBy === undefined) continue;
    process.stdout.write(`${rule}: ${name}\n`);
    const code = await again(['--mutant', name, '--first-seed', `${seenBy}`, '--seeds', '1']);
    if (code === 1) continue;
    missed += 1;
    process.stdout.write(`  NOT SEEN by seed ${seenBy}\n`);
  }
  return missed === 0 ? 0 : 1;
}

async function main(): Promise<number> {
  if (values.mutants) return await allMutants();
  const isMutated = process.execArgv.some((word) => word.includes('/mutation.ts?'));
  if (values.mutant !== undefined && isSourceMutant(values.mutant) && !isMutated) {
    const url = new URL(`mutation.ts?${encodeURIComponent(values.mutant)}`, import.meta.url);
    return await again(process.argv.slice(2), ['--import', url.href]);
  }
  const seed = numberOf('seed');
  if (seed !== undefined) return await one(seed);
  const minutes = numberOf('minutes');
  const first = numberOf('first-seed') ?? Math.floor(new SystemRandom().fraction() * 1_000_000_000);
  process.stdout.write(`first seed ${first}\n`);
  return await many(first, numberOf('seeds') ?? (minutes === undefined ? 100 : Infinity), minutes ?? Infinity);
}

if (values.help) process.stdout.write(USAGE);
else if (values.worker) work();
else process.exitCode = await main();
