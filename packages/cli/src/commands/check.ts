import { codeOf, keepAlive, messageOf, systemClock, SystemRandom, toHex, WebdfsError } from '@webdfs/base';
import {
  checkHistory,
  drawOperations,
  type HistoryReport,
  type RecordedWorkload,
  recordWorkload,
} from '@webdfs/history';
import { S3Client, s3Subject } from '@webdfs/webdfs/remote';
import { type Arguments, type Command, EXIT, UsageError } from '../command.ts';
import { type FaultRun, runFaults } from '../fault-command.ts';
import { remoteOf, REMOTE_OPTIONS } from '../remote.ts';
import { printJson, printLine, type Terminal } from '../terminal.ts';

interface Plan {
  readonly seconds: number;
  readonly clients: number;
  readonly keys: number;
  readonly maxBytes: number;
  readonly thinkMs: number;
  readonly seed: number;
  readonly everyMs: number;
}

function planOf(args: Arguments): Plan {
  const fresh = new DataView(new SystemRandom().bytes(4).buffer).getUint32(0);
  return {
    seconds: args.count('seconds', 30, { least: 1, most: 86_400 }),
    clients: args.count('clients', 8, { least: 1, most: 256 }),
    keys: args.count('keys', 16, { least: 1, most: 1_000 }),
    maxBytes: args.count('max-bytes', 2_000, { least: 64, most: 16 * 1024 * 1024 }),
    thinkMs: args.count('think-ms', 20, { least: 0, most: 60_000 }),
    seed: args.count('seed', fresh, { least: 0, most: 2 ** 32 - 1 }),
    everyMs: 1_000 * args.count('fault-every', 5, { least: 0, most: 3_600 }),
  };
}

/** Where the objects of this check go: a bucket of its own, or below a prefix of one that is there. */
interface Place {
  readonly bucket: string;
  readonly prefix: string;
  readonly isOurs: boolean;
}

async function makePlace(client: S3Client, bucket: string | undefined): Promise<Place> {
  const name = `webdfs-check-${toHex(new SystemRandom().bytes(6))}`;
  if (bucket !== undefined) return { bucket, prefix: `${name}/`, isOurs: false };
  await client.call({ method: 'PUT', bucket: name });
  return { bucket: name, prefix: '', isOurs: true };
}

async function cleanUp(client: S3Client, { bucket, prefix, isOurs }: Place, terminal: Terminal): Promise<void> {
  try {
    for await (const { key } of client.list(bucket, prefix)) await client.call({ method: 'DELETE', bucket, key });
    if (isOurs) await client.call({ method: 'DELETE', bucket });
  } catch (error) {
    if (codeOf(error) === undefined) throw error;
    terminal.errors.write(`left behind: s3://${bucket}/${prefix}: ${messageOf(error)}\n`);
  }
}

interface Findings {
  readonly report: HistoryReport;
  readonly recorded: RecordedWorkload;
  readonly faults: readonly FaultRun[];
  readonly plan: Plan;
}

function verdictOf({ report, recorded }: Findings): 'linearizable' | 'not-linearizable' | 'undecided' {
  if (report.offence !== undefined || recorded.odd.length > 0) return 'not-linearizable';
  return report.undecided.length > 0 ? 'undecided' : 'linearizable';
}

function printFindings(terminal: Terminal, findings: Findings): void {
  const { report, recorded, faults, plan } = findings;
  const verdict = verdictOf(findings);
  const { offence, undecided, ...counts } = report;
  if (terminal.json) {
    const { odd, errors, longestPauseMs } = recorded;
    printJson(terminal, {
      verdict,
      seed: plan.seed,
      ...counts,
      errors,
      longestPauseMs,
      odd,
      undecided,
      faults,
      offence,
    });
    return;
  }
  printLine(
    terminal,
    `${report.operations} operations of ${plan.clients} clients on ${report.keys} keys, ${report.unknown} of unknown outcome`,
  );
  const errors = Object.entries(recorded.errors).map(([code, count]) => `${count} ${code}`);
  printLine(
    terminal,
    `errors: ${errors.join(', ') || 'none'}; longest pause ${Math.round(recorded.longestPauseMs)} ms`,
  );
  for (const { key, what } of recorded.odd) printLine(terminal, `${key}: ${what}`);
  if (offence !== undefined) {
    printLine(terminal, `no order explains what was told of ${offence.key} (times in ms):`);
    for (const line of drawOperations(offence.operations, { unit: ' ms' })) printLine(terminal, `  ${line}`);
  }
  if (undecided.length > 0)
    printLine(terminal, `too hard to decide: ${undecided.join(', ')}; use more keys or fewer clients`);
  printLine(terminal, verdict === 'not-linearizable' ? 'NOT LINEARIZABLE' : verdict);
}

async function run(args: Arguments, terminal: Terminal): Promise<number> {
  if (args.positionals.length > 0) throw new UsageError('usage: webdfs check [--endpoint URL]');
  const plan = planOf(args);
  const { endpoint, credentials } = await remoteOf(args, terminal);
  await using stack = new AsyncDisposableStack();
  // pauses between operations keep no process alive
  const alive = keepAlive();
  stack.defer(() => alive.cancel());
  const clients = [endpoint, ...args.texts('door')].map((door) =>
    stack.use(new S3Client({ endpoint: door, credentials, clock: systemClock, connections: plan.clients })),
  );
  const place = await makePlace(clients[0]!, args.text('bucket'));
  if (!args.flag('keep')) stack.defer(() => cleanUp(clients[0]!, place, terminal));
  const over = new AbortController();
  const command = args.text('fault-command');
  const faulting =
    command === undefined
      ? Promise.resolve([])
      : runFaults(command, {
          everyMs: plan.everyMs,
          signal: AbortSignal.any([over.signal, terminal.signal]),
          environment: terminal.environment,
          onLine: (line) => void terminal.errors.write(`fault: ${line}\n`),
        });
  const timeoutMs = 1_000 * args.count('timeout', 30, { least: 1, most: 3_600 });
  const recorded = await recordWorkload({
    subjects: clients.map((client) => s3Subject(client, { ...place, timeoutMs })),
    clients: plan.clients,
    keys: Array.from({ length: plan.keys }, (_, i) => `key-${String(i).padStart(3, '0')}`),
    sizes: [64, plan.maxBytes],
    durationMs: plan.seconds * 1_000,
    thinkMs: plan.thinkMs,
    conditions: !args.flag('no-conditions'),
    seed: plan.seed,
    clock: systemClock,
    signal: terminal.signal,
    whenWorkEnds: async () => {
      over.abort();
      await faulting;
    },
  }).finally(() => over.abort());
  const faults = await faulting;
  if (terminal.signal.aborted) throw new WebdfsError('CANCELLED', 'interrupted');
  const findings = { report: checkHistory(recorded.operations), recorded, faults, plan };
  printFindings(terminal, findings);
  return verdictOf(findings) === 'linearizable' ? EXIT.OK : EXIT.FAILED;
}

export const check: Command = {
  name: 'check',
  usage: 'check [--seconds N] [--fault-command CMD]',
  summary: 'Proves, or refutes, that a store of S3 is linearizable: works on it, and checks what it answered.',
  details:
    'Clients read, write, write under conditions, delete and list few keys in a bucket made for it. Every answer is written\n' +
    'down, and an order of all operations is searched that explains every one. Where there is none, the shortest history\n' +
    'that shows it is printed, and the command ends with 1. CMD is run by the shell again and again meanwhile: it may kill\n' +
    'a process, cut a line or fill a disk, and must undo what it did before it ends.',
  options: {
    ...REMOTE_OPTIONS,
    door: {
      type: 'string',
      multiple: true,
      value: 'URL',
      about: 'another endpoint of the same store; may be repeated',
    },
    seconds: { type: 'string', value: 'N', about: 'how long (30)' },
    clients: { type: 'string', value: 'N', about: 'side by side (8)' },
    keys: { type: 'string', value: 'N', about: 'how many; the fewer, the more often operations meet (16)' },
    'max-bytes': { type: 'string', value: 'N', about: 'of an object (2000)' },
    'think-ms': { type: 'string', value: 'N', about: 'mean pause of a client between operations (20)' },
    timeout: { type: 'string', value: 'N', about: 'seconds until an operation is given up (30)' },
    'no-conditions': { type: 'boolean', about: 'no If-Match and If-None-Match, where a store has none' },
    'fault-command': { type: 'string', value: 'CMD', about: 'run again and again meanwhile' },
    'fault-every': { type: 'string', value: 'N', about: 'seconds between two runs of it (5)' },
    bucket: { type: 'string', value: 'NAME', about: 'work below a prefix of this bucket, instead of in a new one' },
    keep: { type: 'boolean', about: 'leave the objects there' },
    seed: { type: 'string', value: 'N', about: 'of what the clients choose' },
  },
  run,
};
