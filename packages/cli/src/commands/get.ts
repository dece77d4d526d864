import { basename, join } from 'node:path';
import { stat } from 'node:fs/promises';
import { once } from 'node:events';
import { systemClock, WebdfsError } from '@webdfs/base';
import type { S3Client } from '@webdfs/webdfs/remote';
import { type Address, folderOf, parseAddress } from '../address.ts';
import { type Command, EXIT, UsageError } from '../command.ts';
import { pathInside, writeFileStream } from '../local-files.ts';
import { Progress } from '../progress.ts';
import { connect, REMOTE_OPTIONS } from '../remote.ts';
import { formatBytes, printJson, printLine, type Terminal } from '../terminal.ts';

function sizeOf(headers: { readonly 'content-length'?: string | undefined }): number | undefined {
  const length = headers['content-length'];
  return length === undefined ? undefined : Number(length);
}

async function toOutput(client: S3Client, source: Address, terminal: Terminal): Promise<void> {
  const answer = await client.get(source.bucket, source.key, { signal: terminal.signal });
  const size = sizeOf(answer.headers);
  let count = 0;
  for await (const chunk of answer as AsyncIterable<Uint8Array>) {
    count += chunk.length;
    if (!terminal.output.write(chunk)) await once(terminal.output, 'drain');
  }
  if (size !== undefined && count !== size) throw new WebdfsError('INCOMPLETE_BODY', `got ${count} of ${size} bytes`);
}

async function toFile(client: S3Client, source: Address, path: string, terminal: Terminal): Promise<void> {
  const answer = await client.get(source.bucket, source.key, { signal: terminal.signal });
  const size = sizeOf(answer.headers);
  const progress = new Progress({ terminal, clock: systemClock, label: basename(path), total: size });
  await writeFileStream(path, answer, { size, onBytes: (count) => progress.add(count), signal: terminal.signal });
  progress.end();
  if (terminal.json) printJson(terminal, { ...source, path, size });
  else printLine(terminal, `${path}  ${formatBytes(size ?? 0)}`);
}

async function getFolder(client: S3Client, source: Address, folder: string, terminal: Terminal): Promise<number> {
  const prefix = folderOf(source.key);
  let files = 0;
  for await (const object of client.list(source.bucket, prefix)) {
    const name = object.key.slice(prefix.length);
    // what some tools store to stand for an empty folder
    if (object.size === 0 && (name === '' || name.endsWith('/'))) continue;
    await toFile(client, { bucket: source.bucket, key: object.key }, pathInside(folder, name), terminal);
    files++;
  }
  return files;
}

export const get: Command = {
  name: 'get',
  usage: 'get s3://BUCKET/KEY [FILE|FOLDER|-]',
  summary: 'Fetches an object, everything below a prefix (-r), or writes an object to standard output (-).',
  options: { ...REMOTE_OPTIONS, recursive: { type: 'boolean', short: 'r', about: 'everything below the prefix' } },
  async run(args, terminal) {
    const [address, target = '.', ...more] = args.positionals;
    if (address === undefined || more.length > 0) throw new UsageError('usage: webdfs get s3://BUCKET/KEY [FILE]');
    const source = parseAddress(address);
    using client = await connect(args, terminal);
    if (args.flag('recursive')) {
      if (target === '-') throw new UsageError('a folder cannot go to standard output');
      const files = await getFolder(client, source, target, terminal);
      if (files > 0) return EXIT.OK;
      throw new WebdfsError('NOT_FOUND', `nothing lies below ${address}`);
    }
    if (source.key === '') throw new UsageError(`${address} is a bucket: name a key, or add -r`);
    if (target === '-') {
      await toOutput(client, source, terminal);
      return EXIT.OK;
    }
    const facts = await stat(target).catch(() => undefined);
    const path = facts?.isDirectory() === true ? join(target, basename(source.key)) : target;
    await toFile(client, source, path, terminal);
    return EXIT.OK;
  },
};
