import type { S3Client } from '@webdfs/webdfs/remote';
import { type Address, parseAddress } from '../address.ts';
import { type Command, EXIT, UsageError } from '../command.ts';
import { connect, REMOTE_OPTIONS } from '../remote.ts';
import { formatBytes, printJson, printLine, type Terminal } from '../terminal.ts';

async function listBuckets(client: S3Client, terminal: Terminal): Promise<void> {
  for (const bucket of await client.listBuckets()) {
    if (terminal.json) printJson(terminal, bucket);
    else printLine(terminal, `${bucket.created}  s3://${bucket.name}`);
  }
}

async function listKeys(client: S3Client, at: Address, recursive: boolean, terminal: Terminal): Promise<void> {
  let token: string | undefined;
  do {
    const page = await client.listPage(at.bucket, {
      prefix: at.key,
      ...(recursive ? {} : { delimiter: '/' }),
      ...(token === undefined ? {} : { token }),
    });
    for (const prefix of page.prefixes) {
      if (terminal.json) printJson(terminal, { prefix });
      else printLine(terminal, `${'folder'.padStart(24)}  ${''.padStart(10)}  ${prefix}`);
    }
    for (const object of page.objects) {
      if (terminal.json) printJson(terminal, object);
      else printLine(terminal, `${object.modified}  ${formatBytes(object.size).padStart(10)}  ${object.key}`);
    }
    token = page.next;
  } while (token !== undefined && !terminal.signal.aborted);
}

export const ls: Command = {
  name: 'ls',
  usage: 'ls [s3://BUCKET[/PREFIX]]',
  summary: 'Lists buckets, or what lies below a prefix: one level, or all of it with -r.',
  options: { ...REMOTE_OPTIONS, recursive: { type: 'boolean', short: 'r', about: 'all keys below, not one level' } },
  async run(args, terminal) {
    const [address, ...more] = args.positionals;
    if (more.length > 0) throw new UsageError('usage: webdfs ls [s3://BUCKET[/PREFIX]]');
    using client = await connect(args, terminal);
    if (address === undefined) await listBuckets(client, terminal);
    else await listKeys(client, parseAddress(address), args.flag('recursive'), terminal);
    return EXIT.OK;
  },
};
