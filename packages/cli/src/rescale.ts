import { createInterface } from 'node:readline/promises';
import { keepAlive, sleep, systemClock, WebdfsError } from '@webdfs/base';
import type { S3Client, TopologyReport } from '@webdfs/webdfs';
import { isGrave, planOf, runningCluster } from './cluster-plan.ts';
import { type Arguments, EXIT, UsageError } from './command.ts';
import { planText } from './plan-text.ts';
import { connect, REMOTE_OPTIONS } from './remote.ts';
import { StatusLine } from './status-line.ts';
import { formatDuration, printJson, printLine, type Terminal } from './terminal.ts';

/** How a running cluster is changed: the plan is shown, then agreed to, then carried out, and followed on request. */

export const RESCALE_OPTIONS = {
  yes: { type: 'boolean', short: 'y', about: 'do not ask' },
  watch: { type: 'boolean', about: 'follow it until the last group has moved' },
  'keep-factors': { type: 'boolean', about: 'leave calibration as it is: less moves, loads are less true to weight' },
  ...REMOTE_OPTIONS,
} as const;

const LOOK_MS = 1_000;

/** What becomes of a topology report, while groups move. */
export async function lookAtTopology(client: S3Client, signal?: AbortSignal): Promise<TopologyReport> {
  const asked = { method: 'GET', bucket: '-', key: 'topology' } as const;
  const { body } = await client.call(signal === undefined ? asked : { ...asked, signal });
  return JSON.parse(body) as TopologyReport;
}

/** @throws CONFLICT if the topology was changed since `revision` */
export async function tellTopology(client: S3Client, query: Record<string, string>): Promise<TopologyReport> {
  const { body } = await client.call({ method: 'POST', bucket: '-', key: 'topology', query });
  return JSON.parse(body) as TopologyReport;
}

async function isAgreed(terminal: Terminal): Promise<boolean> {
  if (terminal.json || terminal.errors.isTTY !== true) {
    throw new UsageError('say --yes to carry it out: nobody is there to be asked');
  }
  const asking = createInterface({ input: terminal.input, output: terminal.errors });
  try {
    return /^y(es)?$/i.test((await asking.question('Carry it out? [y/N] ', { signal: terminal.signal })).trim());
  } finally {
    asking.close();
  }
}

/** A topology is settled when no change is under way and every group is where it should be. */
function isDone({ target, groups, atGoal }: TopologyReport): boolean {
  return target === undefined && atGoal === groups;
}

function progressText(report: TopologyReport, moved: number, seconds: number): string {
  const { groups, atGoal, paused } = report;
  const left = groups - atGoal;
  const rate = seconds > 0 ? moved / seconds : 0;
  const share = `${Math.floor((100 * atGoal) / groups)} % of ${groups} groups are where they should be, ${left} are to move`;
  if (paused) return `${share}; paused: "webdfs cluster rescale resume"`;
  if (left === 0) return `${share}; about to settle`;
  return `${share}, ${rate.toFixed(1)}/s, ${rate > 0 ? formatDuration(left / rate) : '?'} left`;
}

/** Follows a rescale to its end. Groups may go on and off their goals meanwhile: a node that dies takes its own away. */
export async function watchRescale(client: S3Client, terminal: Terminal): Promise<TopologyReport> {
  using _ = heldAlive();
  const line = new StatusLine(terminal, systemClock);
  const began = systemClock.monotonic();
  let report = await lookAtTopology(client, terminal.signal);
  const before = report.atGoal;
  while (!isDone(report)) {
    const seconds = (systemClock.monotonic() - began) / 1_000;
    line.show(progressText(report, report.atGoal - before, seconds));
    if (terminal.json) printJson(terminal, { groups: report.groups, atGoal: report.atGoal, paused: report.paused });
    await sleep(systemClock, LOOK_MS, terminal.signal);
    try {
      report = await lookAtTopology(client, terminal.signal);
    } catch (error) {
      // whoever was asked may have gone: another node answers next time
      if (!(error instanceof WebdfsError) || error.remedy !== 'retry') throw error;
    }
  }
  line.end();
  return report;
}

function heldAlive(): Disposable {
  const held = keepAlive();
  return { [Symbol.dispose]: () => held.cancel() };
}

/** A change of the running cluster, in the words of `webdfs plan`. */
export interface RescaleRequest {
  readonly words: readonly string[];
  /** Folders that get the new nodes' places, in order. */
  readonly folders?: readonly string[];
  /** What to say once it is done. */
  readonly done: string;
}

/** Shows the plan, asks, carries it out, follows. `ask` says what is wanted, once it has seen the cluster. */
export async function rescale(
  args: Arguments,
  terminal: Terminal,
  ask: (report: TopologyReport) => RescaleRequest,
): Promise<number> {
  using client = await connect(args, terminal);
  const { report, ...present } = await runningCluster(client);
  const { words, folders = [], done } = ask(report);
  const keepFactors = args.flag('keep-factors');
  const plan = await planOf({ words, to: undefined, keepFactors, balance: false }, present);
  if (terminal.json) printJson(terminal, plan);
  else printLine(terminal, planText(plan));
  if (isGrave(plan)) return EXIT.FAILED;
  if (!args.flag('yes') && !(await isAgreed(terminal))) return EXIT.OK;
  await tellTopology(client, {
    action: 'change',
    revision: String(report.revision),
    changes: words.join(' '),
    folders: folders.join(','),
    ...(keepFactors ? { 'keep-factors': 'yes' } : {}),
  });
  if (args.flag('watch')) {
    await watchRescale(client, terminal);
    if (!terminal.json) printLine(terminal, done);
  } else if (!terminal.json) {
    printLine(terminal, 'It is under way: "webdfs cluster rescale watch" follows it, "pause" and "abort" stop it.');
  }
  return EXIT.OK;
}
