import { stat } from 'node:fs/promises';
import { basename } from 'node:path';
import { systemClock } from '@webdfs/base';
import { type S3Client, upload } from '@webdfs/webdfs/remote';
import { type Address, folderOf, parseAddress } from '../address.ts';
import { type Command, EXIT, UsageError } from '../command.ts';
import { filesBelow, readFileStream } from '../local-files.ts';
import { Progress } from '../progress.ts';
import { connect, REMOTE_OPTIONS } from '../remote.ts';
import { formatBytes, printJson, printLine, type Terminal } from '../terminal.ts';

interface Job {
  readonly source: AsyncIterable<Uint8Array>;
  readonly size: number | undefined;
  readonly label: string;
  readonly target: Address;
}

async function putOne(client: S3Client, job: Job, terminal: Terminal, headers: Record<string, string>): Promise<void> {
  const progress = new Progress({ terminal, clock: systemClock, label: job.label, total: job.size });
  const done = await upload(
    {
      client,
      clock: systemClock,
      ...job.target,
      headers,
      signal: terminal.signal,
      onSent: (bytes) => progress.add(bytes),
    },
    job.source,
  );
  progress.end();
  const { bucket, key } = job.target;
  if (terminal.json) printJson(terminal, { bucket, key, size: done.size, etag: done.etag });
  else printLine(terminal, `s3://${bucket}/${key}  ${formatBytes(done.size)}`);
}

/** The key for a file: as named, or the file's own name below a key that ends in `/` or is empty. */
function keyFor(target: Address, path: string): Address {
  return target.key === '' || target.key.endsWith('/') ? { ...target, key: target.key + basename(path) } : target;
}

async function* jobsOf(source: string, target: Address, recursive: boolean, terminal: Terminal): AsyncGenerator<Job> {
  if (source === '-') {
    if (target.key === '' || target.key.endsWith('/')) throw new UsageError('standard input needs a whole key');
    yield { source: terminal.input, size: undefined, label: '-', target };
    return;
  }
  const facts = await stat(source).catch(() => undefined);
  if (facts === undefined) throw new UsageError(`there is no file ${source}`);
  if (!facts.isDirectory()) {
    yield { source: readFileStream(source), size: facts.size, label: basename(source), target: keyFor(target, source) };
    return;
  }
  if (!recursive) throw new UsageError(`${source} is a folder: add -r`);
  const prefix = folderOf(target.key);
  for await (const file of filesBelow(source)) {
    const address = { bucket: target.bucket, key: prefix + file.name };
    yield { source: readFileStream(file.path), size: file.size, label: file.name, target: address };
  }
}

export const put: Command = {
  name: 'put',
  usage: 'put FILE|FOLDER|- s3://BUCKET/KEY',
  summary: 'Stores a file, a folder (-r) or standard input (-).',
  details: [
    'A KEY that is empty or ends in / takes the name of the file. Long bodies go in parts that are sent again when the',
    'store asks for it; an upload that is interrupted leaves nothing behind. In a folder, links and devices are left out.',
  ].join('\n'),
  options: {
    ...REMOTE_OPTIONS,
    recursive: { type: 'boolean', short: 'r', about: 'a folder with everything below it' },
    type: { type: 'string', value: 'TYPE', about: 'the Content-Type to keep (default: binary/octet-stream)' },
  },
  async run(args, terminal) {
    const [source, address, ...more] = args.positionals;
    if (source === undefined || address === undefined || more.length > 0)
      throw new UsageError('usage: webdfs put FILE s3://BUCKET/KEY');
    const target = parseAddress(address);
    const type = args.text('type');
    using client = await connect(args, terminal);
    let files = 0;
    for await (const job of jobsOf(source, target, args.flag('recursive'), terminal)) {
      await putOne(client, job, terminal, type === undefined ? {} : { 'content-type': type });
      files++;
    }
    if (files === 0 && !terminal.json) printLine(terminal, `${source} holds no files: nothing was stored`);
    return EXIT.OK;
  },
};
