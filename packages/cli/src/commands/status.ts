import type { NodeReport, StatusReport } from '@webdfs/webdfs';
import { type Command, EXIT } from '../command.ts';
import { connect, REMOTE_OPTIONS } from '../remote.ts';
import { formatBytes, formatDuration, formatTable, printJson, printLine } from '../terminal.ts';

function remark(node: NodeReport): string {
  const remarks: string[] = [];
  if (node.reason !== undefined) remarks.push(node.reason);
  if (node.catchingUp !== undefined) {
    const { groupsLeft, bytesPerSecond, secondsLeft } = node.catchingUp;
    // without a rate there is no time left to tell, least of all 0 s
    const pace = bytesPerSecond > 0 ? `, ${formatBytes(bytesPerSecond)}/s, ${formatDuration(secondsLeft)} left` : '';
    remarks.push(`catching up: ${groupsLeft} groups to go${pace}`);
  }
  if (node.full === true) remarks.push('disk full: free space or it takes no more');
  if ((node.damaged ?? 0) > 0) remarks.push(`${node.damaged} damaged places`);
  return remarks.join('; ');
}

function row(node: NodeReport): string[] {
  const amount = (value: number | undefined): string => (value === undefined ? '-' : formatBytes(value));
  return [
    String(node.id),
    node.state,
    String(node.pid ?? '-'),
    String(node.objects ?? '-'),
    amount(node.bytes),
    amount(node.freeBytes),
    remark(node),
  ];
}

function scrubText({ scrub }: StatusReport): string {
  const { running, lastComplete } = scrub;
  const now = running ? '; a pass is under way' : '';
  if (lastComplete === undefined) return `copies never counted to the end${now}`;
  const found = lastComplete.clean ? 'all good' : 'not all good';
  return `all copies counted ${lastComplete.ended}: ${lastComplete.objects} objects, ${found}${now}`;
}

function text(report: StatusReport): string {
  const { groups } = report;
  const parts = [
    `${groups.whole} of ${groups.total} groups whole`,
    ...(groups.degraded > 0 ? [`${groups.degraded} degraded`] : []),
    ...(groups.readsOnly > 0 ? [`${groups.readsOnly} read-only`] : []),
    ...(groups.waiting > 0 ? [`${groups.waiting} waiting for their nodes`] : []),
    ...(groups.lost > 0 ? [`${groups.lost} LOST`] : []),
    ...(groups.withoutPrimary > 0 ? [`${groups.withoutPrimary} without a serving primary`] : []),
  ];
  return [
    `cluster ${report.name}, epoch ${report.epoch}, ${report.copies} copies by ${report.placement}`,
    parts.join(', '),
    scrubText(report),
    '',
    formatTable(['node', 'state', 'pid', 'records', 'bytes', 'free', ''], report.nodes.map(row)),
  ].join('\n');
}

export const status: Command = {
  name: 'status',
  usage: 'status',
  summary: 'Shows nodes, groups, and who is catching up.',
  details: 'Ends with 0 if every group is whole, with 1 if not.',
  options: REMOTE_OPTIONS,
  async run(args, terminal) {
    using client = await connect(args, terminal);
    const { body } = await client.call({ method: 'GET', bucket: '-', key: 'status' });
    const report: StatusReport = JSON.parse(body);
    if (terminal.json) printJson(terminal, report);
    else printLine(terminal, text(report));
    return report.groups.whole === report.groups.total ? EXIT.OK : EXIT.FAILED;
  },
};
