import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Rates } from '@webdfs/rescale';
import { atMost, type Check } from '../../report/check.ts';
import { numberColumn, type ReportSection, textColumn } from '../../report/report.ts';
import { UNIFORM } from '../distribution/uniform.ts';
import { filesOfOneSize } from '../file-sizes.ts';
import type { Runner } from '../runner.ts';
import { boundFor, membershipOf, nameOf, type Scenario } from '../scenario.ts';
import { MIN_MAX } from '../schedulers/min-max.ts';
import { spreadOf } from '../spread.ts';
import { type ProcessFigures, runProcesses } from './process-run.ts';

const MIB = 1_048_576;
/** Lasts longer than a timer's tick at these rates; a drive wants larger ones. */
const PIECE_BYTES = 16_384;
const DRIVE_PIECE_BYTES = 65_536;
const WINDOW_PIECES = 16;
const KEPT_PIECES = 64;

const GATE = { median: 1.1, each: 1.16 } as const;
/** Runs that count, and how many are tried for them. */
const RUNS = { valid: 3, tried: 6 } as const;
/**
 * When a run counts: otherwise it measures the neighbours. One stop of a process lengthens the whole run by as much, and no percentile shows
 * it: `stopShare` is the longest that is allowed, as a share of the bound.
 */
const VALID = { idleShare: 0.25, delayP99Ms: 50, stopShare: 0.04, calibration: 0.03 } as const;
const CALIBRATION_SECONDS = 3;

/** A set-up with a process for each node, all on this machine: bytes and rates are small, their quotient is not. */
export interface ProcessCase {
  readonly scenario: Scenario;
  /** Caps of each node, bytes per second. */
  readonly rates: Rates;
  readonly storage: 'memory' | 'drive' | 'cached drive';
  readonly shows: string;
}

type Shape = readonly [nodes: number, change: number, copies: number, mib: number];

function scenarioOf([nodes, change, copies, mib]: Shape): Scenario {
  return { nodes, change, copies, bytesPerNode: mib * MIB };
}

function inMemory(shape: Shape, shows: string): ProcessCase {
  return { scenario: scenarioOf(shape), rates: networkOf(2 * MIB), storage: 'memory', shows };
}

function onDrive(shape: Shape, storage: ProcessCase['storage'], shows: string): ProcessCase {
  return { scenario: scenarioOf(shape), rates: { network: 8 * MIB, read: 2 * MIB, write: 2 * MIB }, storage, shows };
}

function networkOf(network: number): Rates {
  return { network, read: Infinity, write: Infinity };
}

export const PROCESS_CASES: readonly ProcessCase[] = [
  inMemory([4, 4, 2, 40], 'plain growth'),
  inMemory([4, 12, 3, 64], 'forwarding'),
  inMemory([8, -2, 3, 60], 'shrinking'),
  inMemory([8, -1, 2, 140], 'one node out'),
];

/** Devices set the pace; past the page cache, where every write is durable, and through it. */
export const DRIVE_CASES: readonly ProcessCase[] = [
  onDrive([4, 4, 2, 40], 'drive', 'plain growth'),
  onDrive([8, -2, 3, 44], 'drive', 'shrinking, where all devices read and write'),
  onDrive([4, 4, 2, 40], 'cached drive', 'plain growth through the page cache'),
];

/** The published set-ups at 1 : 1000: the same seconds. Forty processes want a machine to themselves. */
export const SLIDE_CASES: readonly ProcessCase[] = [
  {
    scenario: { nodes: 10, change: 30, copies: 3, bytesPerNode: 50e6 },
    rates: networkOf(1.25e6),
    storage: 'memory',
    shows: 'published growth',
  },
  {
    scenario: { nodes: 20, change: -7, copies: 3, bytesPerNode: 50e6 },
    rates: networkOf(1.25e6),
    storage: 'memory',
    shows: 'published shrinking',
  },
];

interface ProcessRow {
  readonly name: string;
  readonly bound: number;
  readonly figures: ProcessFigures;
  readonly ratio: number;
  /** Why the run does not count; empty if it does. */
  readonly invalid: readonly string[];
}

async function run(
  { scenario, rates, storage }: ProcessCase,
  seed: number,
  signal: AbortSignal,
): Promise<ProcessFigures> {
  const bytes = storage === 'memory' ? PIECE_BYTES : DRIVE_PIECE_BYTES;
  const folder = await mkdtemp(join(tmpdir(), 'webdfs-rescale-'));
  try {
    return await runProcesses({
      membership: membershipOf(scenario),
      bytesPerNode: scenario.bytesPerNode,
      rates,
      limits: { windowBytes: WINDOW_PIECES * bytes, keepBytes: KEPT_PIECES * bytes, depth: 2 },
      storage:
        storage === 'memory' ? { kind: 'memory' } : { kind: 'drive', folder, cached: storage === 'cached drive' },
      metadata: filesOfOneSize(bytes),
      distribution: UNIFORM,
      scheduler: MIN_MAX,
      seed,
      signal,
    });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** The rate of the same code when nothing stands in its way, by what the caps allow. */
async function calibration(one: ProcessCase, signal: AbortSignal): Promise<number> {
  // of two nodes with one copy each, the one that leaves sends all it has
  const slowest = Math.min(...Object.values(one.rates));
  const scenario: Scenario = { nodes: 2, change: -1, copies: 1, bytesPerNode: CALIBRATION_SECONDS * slowest };
  const figures = await run({ ...one, scenario }, 1, signal);
  return boundFor(scenario, one.rates).seconds / figures.seconds;
}

function invalidities(figures: ProcessFigures, bound: number, calibrated: number): string[] {
  const { idleShare, delayMs } = figures;
  return [
    ...(idleShare < VALID.idleShare ? [`the machine idled ${(idleShare * 100).toFixed(0)} %`] : []),
    ...(delayMs.p99 > VALID.delayP99Ms ? [`an event loop was ${delayMs.p99.toFixed(0)} ms late`] : []),
    ...(delayMs.most > VALID.stopShare * bound * 1000
      ? [`a process stood still for ${delayMs.most.toFixed(0)} ms`]
      : []),
    ...(Math.abs(calibrated - 1) > VALID.calibration
      ? [`alone a pair of nodes made ${(calibrated * 100).toFixed(1)} % of the cap`]
      : []),
  ];
}

async function rowsOf(one: ProcessCase, runner: Runner, calibrated: number): Promise<ProcessRow[]> {
  const name = `${nameOf(one.scenario)}, ${one.scenario.copies} copies, ${one.storage}`;
  const bound = boundFor(one.scenario, one.rates).seconds;
  const rows: ProcessRow[] = [];
  for (let i = 0; i < RUNS.tried && rows.filter(({ invalid }) => invalid.length === 0).length < RUNS.valid; i++) {
    await runner.step(`processes, ${name}, run ${i + 1}`);
    const figures = await run(one, runner.seeds[0]! + i, runner.signal);
    const invalid = invalidities(figures, bound, calibrated);
    rows.push({ name, bound, figures, ratio: figures.seconds / bound, invalid });
  }
  return rows;
}

function checksOf(rows: readonly ProcessRow[]): Check[] {
  const faults = rows.reduce((sum, { figures }) => sum + figures.faults.length, 0);
  const valid = Map.groupBy(
    rows.filter(({ invalid }) => invalid.length === 0),
    ({ name }) => name,
  );
  return [
    ...Array.from(valid, ([name, counted]) => {
      const { median, most } = spreadOf(counted.map(({ ratio }) => ratio));
      return [
        atMost(`processes, ${name}: median by the bound`, median, GATE.median, '×'),
        atMost(`processes, ${name}: longest by the bound, Pufferbench 1.16`, most, GATE.each, '×'),
      ];
    }).flat(),
    atMost('processes: faults that the validator found', faults, 0, 'faults'),
  ];
}

/** Real processes, sockets, checksums and caps, on this machine. */
export async function processSection(
  id: string,
  cases: readonly ProcessCase[],
  runner: Runner,
): Promise<{ section: ReportSection; checks: Check[]; invalid: string[] }> {
  const rows: ProcessRow[] = [];
  const invalid: string[] = [];
  for (const one of cases) {
    await runner.step(`processes, calibration of ${nameOf(one.scenario)}`);
    const calibrated = await calibration(one, runner.signal);
    const found = await rowsOf(one, runner, calibrated);
    const counted = found.filter((row) => row.invalid.length === 0).length;
    if (counted < RUNS.valid)
      invalid.push(`${found[0]!.name}: ${counted} valid runs of ${found.length}, ${RUNS.valid} are needed`);
    rows.push(...found);
  }
  return { checks: checksOf(rows), invalid, section: sectionOf(id, cases, rows) };
}

function sectionOf(id: string, cases: readonly ProcessCase[], rows: readonly ProcessRow[]): ReportSection {
  return {
    id,
    title: 'With processes and sockets',
    prose: [
      `A process for each node on this machine, real sockets, every piece with a checksum (${PIECE_BYTES / 1024} KiB, ${DRIVE_PIECE_BYTES / 1024} on drive), each node capped: ` +
        `${cases.map(({ scenario, shows }) => `${nameOf(scenario)} shows ${shows}`).join('; ')}.`,
      'A run counts if the machine idled a quarter of the time, no event loop was 50 ms late in its 99th percentile or stood still for 4 % of the bound, and a lone pair of nodes came within 3 % ' +
        'of the cap; else it measures the neighbours. Pufferbench came within 16 %.',
    ],
    charts: [],
    tables: [
      {
        id: 'runs',
        title: 'Every run',
        columns: [
          textColumn('nodes'),
          numberColumn('T_bound, s', 2),
          numberColumn('T, s', 2),
          numberColumn('T / T_bound', 3),
          numberColumn('first to last end, s', 2),
          numberColumn('CPU, s', 1),
          numberColumn('idle, %'),
          numberColumn('loop p99, ms', 1),
          numberColumn('loop most, ms', 1),
          textColumn('counts'),
        ],
        rows: rows.map(({ name, bound, figures, ratio, invalid }) => [
          name,
          bound,
          figures.seconds,
          ratio,
          figures.finishSpread,
          figures.cpuSeconds,
          figures.idleShare * 100,
          figures.delayMs.p99,
          figures.delayMs.most,
          invalid.length === 0 ? 'yes' : `no: ${invalid.join(', ')}`,
        ]),
      },
    ],
  };
}
