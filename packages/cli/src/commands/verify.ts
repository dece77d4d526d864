import { keepAlive, systemClock } from '@webdfs/base';
import { type VerifyFindings, verifyObjects } from '@webdfs/webdfs/remote';
import { parseAddress } from '../address.ts';
import { type Command, EXIT, UsageError } from '../command.ts';
import { StatusLine } from '../status-line.ts';
import { connect, REMOTE_OPTIONS } from '../remote.ts';
import { formatBytes, printJson, printLine, type Terminal } from '../terminal.ts';

/** Problems printed; `--json` gives more. */
const MAX_PRINTED = 50;

function print(terminal: Terminal, findings: VerifyFindings, proved: boolean): void {
  const { buckets, objects, bytes, copies, deleted, bad, notCounted, problems } = findings;
  const gone = deleted > 0 ? `; ${deleted} were deleted meanwhile` : '';
  printLine(
    terminal,
    `${objects} objects in ${buckets} buckets read, ${formatBytes(bytes)}; ${copies} copies verified${gone}`,
  );
  for (const { bucket, key, what } of problems.slice(0, MAX_PRINTED)) {
    printLine(terminal, `s3://${bucket}${key === undefined ? '' : `/${key}`}: ${what}`);
  }
  const more = bad + notCounted - Math.min(problems.length, MAX_PRINTED);
  if (more > 0) printLine(terminal, `and ${more} more`);
  if (proved) printLine(terminal, 'Every object is what was stored, and every copy is in its place and good.');
  else printLine(terminal, `NOT PROVED: ${bad} missing or damaged, ${notCounted} not counted.`);
}

export const verify: Command = {
  name: 'verify',
  usage: 'verify [s3://BUCKET[/PREFIX]]',
  summary: 'Reads every object, and has every node verify its copy: proof from outside.',
  details:
    'Compares the bytes of each object with its ETag. Ends with 0 only if nothing is missing, nothing is damaged, and nothing ' +
    'was left out; else with 1.',
  options: {
    ...REMOTE_OPTIONS,
    'at-once': { type: 'string', value: 'COUNT', about: 'objects read at once (default: 8)' },
  },
  async run(args, terminal) {
    const [address, ...more] = args.positionals;
    if (more.length > 0) throw new UsageError('usage: webdfs verify [s3://BUCKET[/PREFIX]]');
    const at = address === undefined ? undefined : parseAddress(address);
    using client = await connect(args, terminal);
    const line = new StatusLine(terminal, systemClock);
    const awake = keepAlive();
    const findings = await verifyObjects({
      client,
      clock: systemClock,
      ...(at === undefined ? {} : { bucket: at.bucket, prefix: at.key }),
      atOnce: args.count('at-once', 8, { least: 1, most: 256 }),
      signal: terminal.signal,
      onProgress: ({ objects, bytes, bad, notCounted }) => {
        line.show(`${objects} objects, ${formatBytes(bytes)} read; ${bad} bad, ${notCounted} not counted`);
      },
    }).finally(() => awake.cancel());
    line.end();
    const proved = findings.bad === 0 && findings.notCounted === 0;
    if (terminal.json) printJson(terminal, { ...findings, proved });
    else print(terminal, findings, proved);
    return proved ? EXIT.OK : EXIT.FAILED;
  },
};
