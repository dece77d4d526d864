import { keepAlive, sleep, systemClock, WebdfsError } from '@webdfs/base';
import type { S3Client, ScrubReport } from '@webdfs/webdfs/remote';
import { type Arguments, type Command, EXIT } from '../command.ts';
import { connect, REMOTE_OPTIONS } from '../remote.ts';
import { StatusLine } from '../status-line.ts';
import { formatBytes, formatDuration, printJson, printLine, type Terminal } from '../terminal.ts';

const LOOK_MS = 500;
/** A pass at which nobody works is given up after so long: a node that restarts is back by then. */
const STOPPED_MS = 10_000;
const MEGABYTE = 1_000_000;
/** Groups and problems printed; `--json` gives more. */
const MAX_PRINTED = 20;

async function ask(client: S3Client, signal: AbortSignal): Promise<ScrubReport> {
  const { body } = await client.call({ method: 'GET', bucket: '-', key: 'scrub', signal });
  return JSON.parse(body);
}

async function begin(client: S3Client, args: Arguments, signal: AbortSignal): Promise<ScrubReport> {
  const pace = args.count('pace', 0, { least: 2, most: MEGABYTE });
  const query: Record<string, string> = pace === 0 ? {} : { pace: String(pace * MEGABYTE) };
  const { body } = await client.call({ method: 'POST', bucket: '-', key: 'scrub', query, signal });
  return JSON.parse(body);
}

/** Until everything is counted, or nobody goes on. A store that does not answer for a moment is asked again. */
async function follow(client: S3Client, first: ScrubReport, terminal: Terminal): Promise<ScrubReport> {
  const { signal } = terminal;
  const line = new StatusLine(terminal, systemClock);
  let report = first;
  let workedAt = systemClock.monotonic();
  while (report.state === 'running' || report.state === 'stopped') {
    const now = systemClock.monotonic();
    if (report.state === 'running') workedAt = now;
    if (now - workedAt > STOPPED_MS) break;
    const { share, bytesPerSecond, secondsLeft } = report.progress;
    const left = report.state === 'running' ? `, ${formatDuration(secondsLeft)} left` : '; nobody is at work';
    line.show(`${Math.floor(share * 100)} % of the groups counted, ${formatBytes(bytesPerSecond)}/s${left}`);
    await sleep(systemClock, LOOK_MS, signal);
    try {
      report = await ask(client, signal);
    } catch (error) {
      if (!(error instanceof WebdfsError) || error.remedy !== 'retry') throw error;
      report = { ...report, state: 'stopped', complete: false, clean: false };
    }
  }
  line.end();
  return report;
}

function copiesLine(what: string, counts: Readonly<Record<string, number>>): string {
  const parts = Object.entries(counts)
    .toSorted((a, b) => Number(b[0]) - Number(a[0]))
    .map(([copies, count]) => `${count} with ${copies}`);
  return `${what} by good copies, as found: ${parts.length === 0 ? 'none' : parts.join(', ')}`;
}

function policyLines(policy: ScrubReport['policies'][number]): string[] {
  const { copies, groups, countedGroups, objects, others, bytes, found, mended, left, problems, omitted } = policy;
  const faults = Object.entries(found).filter(([, count]) => count > 0);
  const lines = [
    `policy ${policy.policy}, ${copies} copies: ${countedGroups} of ${groups} groups counted, ${formatBytes(bytes)}`,
    `  ${copiesLine('objects', objects)}`,
    `  ${copiesLine('what the store keeps for itself', others)}`,
  ];
  if (faults.length > 0 || left > 0) {
    const named = faults.map(([fault, count]) => `${count} ${fault}`).join(', ');
    lines.push(`  wrong copies: ${named === '' ? 'none' : named}; ${mended} mended, ${left} left`);
  }
  for (const problem of problems.slice(0, MAX_PRINTED)) {
    const { bucket, key, what, wrong, why } = problem;
    const name = bucket === undefined ? key : `s3://${bucket}/${key}`;
    const at = wrong.map(({ node, fault }) => `${fault} at node ${node}`).join(', ');
    const end = problem.mended ? 'mended' : `NOT MENDED${why === undefined ? '' : `: ${why}`}`;
    lines.push(`  ${name}, ${what}: ${at === '' ? `${problem.copies} good copies` : at}; ${end}`);
  }
  const more = omitted + problems.length - Math.min(problems.length, MAX_PRINTED);
  if (more > 0) lines.push(`  and ${more} more`);
  return lines;
}

function verdict(report: ScrubReport): string {
  if (report.state === 'none') return 'No pass was ever begun: begin one with --now.';
  if (report.clean) return 'Complete: everything was counted, and every copy is good.';
  if (report.complete) return 'Complete: everything was counted. Not every copy was good: see above.';
  const state = report.state === 'running' ? 'a pass is under way' : 'nobody goes on with it';
  return `NOT COMPLETE: ${state}; what is not counted may be in any state.`;
}

function print(terminal: Terminal, report: ScrubReport): void {
  const { pass, notCounted, notCountedGroups, nodes, lastComplete } = report;
  if (pass !== undefined) {
    printLine(terminal, `pass of ${pass.began}, ${formatBytes(pass.bytesPerSecond)}/s at each node`);
    for (const policy of report.policies) for (const text of policyLines(policy)) printLine(terminal, text);
    for (const { policy, group, why } of notCounted.slice(0, MAX_PRINTED)) {
      printLine(terminal, `not counted: group ${policy}/${group}: ${why}`);
    }
    const more = notCountedGroups - Math.min(notCounted.length, MAX_PRINTED);
    if (more > 0) printLine(terminal, `not counted: ${more} groups more`);
    for (const { node, state, why, volumes } of nodes.filter(({ isRead }) => !isRead)) {
      const how = volumes === undefined ? (why ?? state) : `${volumes.read} of ${volumes.of} volumes read`;
      printLine(terminal, `not read to the end: node ${node}: ${how}`);
    }
  }
  printLine(terminal, verdict(report));
  if (!report.complete && lastComplete !== undefined) {
    printLine(terminal, `The last complete pass ended ${lastComplete.ended}, with ${lastComplete.objects} objects.`);
  }
}

export const scrub: Command = {
  name: 'scrub',
  usage: 'scrub [--now] [--pace MB/S] [--once]',
  summary: 'Counts and verifies all copies of everything, mends what is wrong, and follows that to its end.',
  details:
    'Without --now it follows the pass that is under way, or shows the last one. Ends with 0 only if the pass is complete and ' +
    'every copy was good; with 1 if something was wrong, though it may have been mended, or was not counted.',
  options: {
    ...REMOTE_OPTIONS,
    now: { type: 'boolean', about: 'begin a pass' },
    pace: { type: 'string', value: 'MB/S', about: 'what each node reads for it (default: 100)' },
    once: { type: 'boolean', about: 'show how far it is, and do not wait for its end' },
  },
  async run(args, terminal) {
    using client = await connect(args, terminal);
    const { signal } = terminal;
    let report = args.flag('now') ? await begin(client, args, signal) : await ask(client, signal);
    const awake = keepAlive();
    try {
      if (!args.flag('once')) report = await follow(client, report, terminal);
    } finally {
      awake.cancel();
    }
    if (terminal.json) printJson(terminal, report);
    else print(terminal, report);
    return report.clean ? EXIT.OK : EXIT.FAILED;
  },
};
