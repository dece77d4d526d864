import type { S3Client } from '@webdfs/webdfs/remote';
import { folderOf, parseAddress } from '../address.ts';
import { type Command, EXIT, UsageError } from '../command.ts';
import { connect, REMOTE_OPTIONS } from '../remote.ts';
import { printJson, printLine, type Terminal } from '../terminal.ts';

const PARALLEL_DELETES = 16;

async function removeBelow(client: S3Client, bucket: string, prefix: string, signal: AbortSignal): Promise<number> {
  let removed = 0;
  let keys: string[] = [];
  const flush = async (): Promise<void> => {
    await Promise.all(keys.map((key) => client.call({ method: 'DELETE', bucket, key, signal })));
    removed += keys.length;
    keys = [];
  };
  for await (const object of client.list(bucket, prefix)) {
    keys.push(object.key);
    if (keys.length === PARALLEL_DELETES) await flush();
  }
  await flush();
  return removed;
}

function report(terminal: Terminal, address: string, removed: number): void {
  if (terminal.json) printJson(terminal, { address, removed });
  else printLine(terminal, `removed ${removed} object${removed === 1 ? '' : 's'} of ${address}`);
}

export const rm: Command = {
  name: 'rm',
  usage: 'rm s3://BUCKET/KEY',
  summary: 'Removes an object, or with -r everything below a prefix.',
  details: 'With -r a KEY is a folder: logs removes logs/2026/a, and leaves logs-old/b alone.',
  options: { ...REMOTE_OPTIONS, recursive: { type: 'boolean', short: 'r', about: 'everything below the prefix' } },
  async run(args, terminal) {
    const [address, ...more] = args.positionals;
    if (address === undefined || more.length > 0) throw new UsageError('usage: webdfs rm s3://BUCKET/KEY');
    const { bucket, key } = parseAddress(address);
    using client = await connect(args, terminal);
    if (args.flag('recursive')) {
      report(terminal, address, await removeBelow(client, bucket, folderOf(key), terminal.signal));
      return EXIT.OK;
    }
    if (key === '') throw new UsageError(`${address} is a bucket: use rb, or -r to remove what is in it`);
    // S3 answers a delete of nothing like any other; a person who mistyped a key wants to know
    await client.head(bucket, key);
    await client.call({ method: 'DELETE', bucket, key });
    report(terminal, address, 1);
    return EXIT.OK;
  },
};
