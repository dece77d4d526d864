import { keepAlive, sleep, systemClock, WebdfsError } from '@webdfs/base';
import type { S3Client, ScrubReport } from '@webdfs/webdfs/remote';
import { type Arguments, type Command, EXIT } from '../command.ts';
import { connect, REMOTE_OPTIONS } from '../remote.ts';
import { scrubText } from '../scrub-text.ts';
import { StatusLine } from '../status-line.ts';
import { formatBytes, formatDuration, printJson, printLine, type Terminal } from '../terminal.ts';

const LOOK_MS = 500;
/** A pass at which nobody works is given up after so long: a node that restarts is back by then. */
const STOPPED_MS = 10_000;
const MEGABYTE = 1_000_000;

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
    else for (const text of scrubText(report)) printLine(terminal, text);
    return report.clean ? EXIT.OK : EXIT.FAILED;
  },
};
