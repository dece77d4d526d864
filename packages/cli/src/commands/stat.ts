import { parseAddress } from '../address.ts';
import { type Command, EXIT, UsageError } from '../command.ts';
import { connect, REMOTE_OPTIONS } from '../remote.ts';
import { formatBytes, printJson, printLine } from '../terminal.ts';

export const stat: Command = {
  name: 'stat',
  usage: 'stat s3://BUCKET/KEY',
  summary: 'Shows size, ETag, times and metadata of an object.',
  options: REMOTE_OPTIONS,
  async run(args, terminal) {
    const [address, ...more] = args.positionals;
    if (address === undefined || more.length > 0) throw new UsageError('usage: webdfs stat s3://BUCKET/KEY');
    const { bucket, key } = parseAddress(address);
    if (key === '') throw new UsageError(`${address} is a bucket: name a key`);
    using client = await connect(args, terminal);
    const { headers } = await client.head(bucket, key, { 'x-amz-checksum-mode': 'ENABLED' });
    const extra = Object.entries(headers).filter(([name]) =>
      /^(x-amz-(meta|checksum)-|cache-|content-(type|enc|lang|disp)|expires)/.test(name),
    );
    const size = Number(headers['content-length'] ?? 0);
    const facts = {
      bucket,
      key,
      size,
      etag: (headers.etag ?? '').replaceAll('"', ''),
      modified: headers['last-modified'] ?? '',
      headers: Object.fromEntries(extra.map(([name, value]) => [name, String(value)])),
    };
    if (terminal.json) {
      printJson(terminal, facts);
      return EXIT.OK;
    }
    printLine(terminal, `address   s3://${bucket}/${key}`);
    printLine(terminal, `size      ${size} bytes (${formatBytes(size)})`);
    printLine(terminal, `etag      ${facts.etag}`);
    printLine(terminal, `modified  ${facts.modified}`);
    for (const [name, value] of Object.entries(facts.headers)) printLine(terminal, `${name}: ${value}`);
    return EXIT.OK;
  },
};
