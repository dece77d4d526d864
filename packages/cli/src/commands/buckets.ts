import { parseAddress } from '../address.ts';
import { type Arguments, type Command, EXIT, UsageError } from '../command.ts';
import { connect, REMOTE_OPTIONS } from '../remote.ts';
import { printJson, printLine } from '../terminal.ts';

function bucketOf(args: Arguments, name: string): string {
  const [address, ...more] = args.positionals;
  if (address === undefined || more.length > 0) throw new UsageError(`usage: webdfs ${name} s3://BUCKET`);
  const { bucket, key } = parseAddress(address);
  if (key !== '') throw new UsageError(`${address} is not a bucket: leave the key away`);
  return bucket;
}

export const mb: Command = {
  name: 'mb',
  usage: 'mb s3://BUCKET',
  summary: 'Makes a bucket; with --public anyone may read it.',
  options: { ...REMOTE_OPTIONS, public: { type: 'boolean', about: 'anyone may read, without keys' } },
  async run(args, terminal) {
    const bucket = bucketOf(args, 'mb');
    using client = await connect(args, terminal);
    const headers = args.flag('public') ? { 'x-amz-acl': 'public-read' } : {};
    await client.call({ method: 'PUT', bucket, headers });
    if (terminal.json) printJson(terminal, { bucket });
    else printLine(terminal, `made s3://${bucket}`);
    return EXIT.OK;
  },
};

export const rb: Command = {
  name: 'rb',
  usage: 'rb s3://BUCKET',
  summary: 'Removes an empty bucket.',
  options: REMOTE_OPTIONS,
  async run(args, terminal) {
    const bucket = bucketOf(args, 'rb');
    using client = await connect(args, terminal);
    await client.call({ method: 'DELETE', bucket });
    if (terminal.json) printJson(terminal, { bucket });
    else printLine(terminal, `removed s3://${bucket}`);
    return EXIT.OK;
  },
};
