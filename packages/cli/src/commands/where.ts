import type { WhereReport } from '@webdfs/webdfs';
import { parseAddress } from '../address.ts';
import { type Command, EXIT, UsageError } from '../command.ts';
import { connect, REMOTE_OPTIONS } from '../remote.ts';
import { formatTable, printJson, printLine } from '../terminal.ts';

function text(report: WhereReport): string {
  const rows = report.places.flatMap((place) =>
    place.copies.map((copy) => [
      place.what,
      String(place.group),
      String(copy.node),
      copy.role,
      copy.present ? 'present' : 'missing',
      copy.checksum,
      copy.problem ?? '',
    ]),
  );
  return [
    ...report.steps,
    '',
    formatTable(['what', 'group', 'node', 'role', 'copy', 'checksum', ''], rows),
    '',
    report.sound ? 'Every copy is present and sound.' : 'Not every copy is present and sound: see the table.',
  ].join('\n');
}

export const where: Command = {
  name: 'where',
  usage: 'where s3://BUCKET/KEY',
  summary: 'Shows which nodes hold an object and why, and verifies every copy now.',
  details: 'Ends with 0 if every copy is present and sound, with 1 if not.',
  options: REMOTE_OPTIONS,
  async run(args, terminal) {
    const [address, ...more] = args.positionals;
    if (address === undefined || more.length > 0) throw new UsageError('usage: webdfs where s3://BUCKET/KEY');
    const { bucket, key } = parseAddress(address);
    if (key === '') throw new UsageError(`${address} is a bucket: name a key`);
    using client = await connect(args, terminal);
    const { body } = await client.call({ method: 'GET', bucket: '-', key: 'where', query: { bucket, key } });
    const report: WhereReport = JSON.parse(body);
    if (terminal.json) printJson(terminal, report);
    else printLine(terminal, text(report));
    return report.sound ? EXIT.OK : EXIT.FAILED;
  },
};
