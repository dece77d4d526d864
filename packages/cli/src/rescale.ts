import { createInterface } from 'node:readline/promises';
import { keepAlive, sleep, systemClock, WebdfsError } from '@webdfs/base';
import {
  isSettled,
  lookAtHistory,
  lookAtTopology,
  type RescaleSummary,
  type S3Client,
  tellTopology,
  type TopologyReport,
  TopologyWatch,
} from '@webdfs/webdfs/remote';
import { graveOf, isGrave, planOf, runningCluster } from './cluster-plan.ts';
import { type Arguments, EXIT, UsageError } from './command.ts';
import { planText } from './plan-text.ts';
import { connect, REMOTE_OPTIONS } from './remote.ts';
import { progressText, summaryText } from './rescale-text.ts';
import { StatusLine } from './status-line.ts';
import { printJson, printLine, type Terminal } from './terminal.ts';

/** How a running cluster is changed: the plan is shown, then agreed to, then carried out, and followed on request. */

export const RESCALE_OPTIONS = {
  yes: { type: 'boolean', short: 'y', about: 'do not ask' },
  watch: { type: 'boolean', about: 'follow it until the last group has moved' },
  'keep-factors': { type: 'boolean', about: 'leave calibration as it is: less moves, loads are less true to weight' },
  ...REMOTE_OPTIONS,
} as const;

const LOOK_MS = 1_000;
const ACCOUNT_TRIES = 10;

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

/**
 * Follows a rescale to its end. Groups may go on and off their goals meanwhile: a node that dies takes its own away.
 *
 * @throws what the last look failed with, when nobody has answered for a minute
 */
export async function watchRescale(client: S3Client, terminal: Terminal): Promise<TopologyReport> {
  using _ = heldAlive();
  const line = new StatusLine(terminal, systemClock);
  const watch = new TopologyWatch(client, systemClock);
  let report = await lookAtTopology(client, terminal.signal);
  while (!isSettled(report)) {
    line.show(progressText(report));
    const { groups, atGoal, paused, moving } = report;
    if (terminal.json) printJson(terminal, { groups, atGoal, paused, ...(moving === undefined ? {} : { moving }) });
    await sleep(systemClock, LOOK_MS, terminal.signal);
    report = (await watch.look(terminal.signal)) ?? report;
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
  /** Members that must have what is acknowledged, where that changes. */
  readonly minCopies?: number;
  /** The words on the command line, for the history. */
  readonly command: string;
  /** What to say once it is done. */
  readonly done: string;
}

/** What became of the last change, once its account is closed: the controller does that a moment after the last group has moved. */
async function lastRescale(client: S3Client, signal: AbortSignal): Promise<RescaleSummary | undefined> {
  for (let tries = 0; tries < ACCOUNT_TRIES; tries++) {
    const [last] = (await lookAtHistory(client)).rescales;
    if (last?.outcome !== 'under way') return last;
    await sleep(systemClock, LOOK_MS, signal);
  }
  return undefined;
}

/** Follows a change to its end and tells what became of it. */
export async function followRescale(client: S3Client, terminal: Terminal, done: string): Promise<void> {
  using _ = heldAlive();
  await watchRescale(client, terminal);
  const last = await lastRescale(client, terminal.signal);
  if (terminal.json) printJson(terminal, last ?? {});
  else printLine(terminal, last === undefined ? done : `${done}\n${summaryText(last)}`);
}

/** Shows the plan, asks, carries it out, follows. `ask` says what is wanted, once it has seen the cluster. */
export async function rescale(
  args: Arguments,
  terminal: Terminal,
  ask: (report: TopologyReport) => RescaleRequest,
): Promise<number> {
  using client = await connect(args, terminal);
  const { report, ...present } = await runningCluster(client);
  const { words, folders = [], minCopies, command, done } = ask(report);
  const keepFactors = args.flag('keep-factors');
  const plan = await planOf({ words, to: undefined, keepFactors, balance: false }, present);
  if (terminal.json) printJson(terminal, plan);
  else printLine(terminal, planText(plan));
  if (isGrave(plan)) throw new WebdfsError('CONFLICT', `that cannot be: ${graveOf(plan).join('; ')}`);
  if (!args.flag('yes') && !(await isAgreed(terminal))) return EXIT.OK;
  await tellTopology(client, {
    action: 'change',
    revision: String(report.revision),
    changes: words.join(' '),
    folders: folders.join(','),
    command,
    ...(minCopies === undefined ? {} : { 'min-copies': String(minCopies) }),
    ...(keepFactors ? { 'keep-factors': 'yes' } : {}),
  });
  if (args.flag('watch')) {
    await followRescale(client, terminal, done);
  } else if (!terminal.json) {
    printLine(terminal, 'It is under way: "webdfs cluster rescale watch" follows it, "pause" and "abort" stop it.');
  }
  return EXIT.OK;
}
