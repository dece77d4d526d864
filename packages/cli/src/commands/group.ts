import type { GroupsReport, StuckGroup } from '@webdfs/webdfs';
import { type Command, EXIT, UsageError } from '../command.ts';
import { connect, REMOTE_OPTIONS } from '../remote.ts';
import { printJson, printLine, type Terminal } from '../terminal.ts';

const SHOWN = 20;

function tellGroup({ policy, group, health, awaited, candidates }: StuckGroup, terminal: Terminal): void {
  const hope = awaited.length === 0 ? 'nobody holds all of it any more' : `nodes ${awaited.join(', ')} hold all of it`;
  printLine(terminal, `group ${group} of policy ${policy}: ${health}; ${hope}`);
  for (const { node, role, last, lastBallot, objects, bytes } of candidates) {
    const part = role === 'learner' ? ', not whole' : '';
    const what = `entry ${last} of ballot ${lastBallot}, ${objects} records, ${bytes} bytes${part}`;
    printLine(terminal, `  node ${node}  ${what}`);
  }
  if (candidates.length === 0) printLine(terminal, '  no node that is up has anything of it');
}

function tell(report: GroupsReport, terminal: Terminal): void {
  if (terminal.json) return printJson(terminal, report);
  if (report.forced !== undefined) printLine(terminal, `${report.forced} groups go on from there`);
  if (report.stuck === 0) return printLine(terminal, 'every group can be served');
  printLine(terminal, `${report.stuck} groups cannot be served`);
  for (const group of report.groups.slice(0, SHOWN)) tellGroup(group, terminal);
  if (report.stuck > SHOWN) printLine(terminal, `… and ${report.stuck - SHOWN} more: --json names up to 1024`);
  for (const { node, why } of report.silent) printLine(terminal, `node ${node} does not say what it has: ${why}`);
}

const candidates: Command = {
  name: 'group candidates',
  usage: 'group candidates',
  summary:
    'Lists the groups that nobody may serve, which nodes would bring them back, and what the others have of them.',
  options: REMOTE_OPTIONS,
  async run(args, terminal) {
    if (args.positionals.length > 0) throw new UsageError(`group candidates takes no ${args.positionals[0]}`);
    using client = await connect(args, terminal);
    const { body } = await client.call({ method: 'GET', bucket: '-', key: 'groups' });
    tell(JSON.parse(body) as GroupsReport, terminal);
    return EXIT.OK;
  },
};

const force: Command = {
  name: 'group force',
  usage: 'group force --group G|all --from NODE --accept-loss',
  summary: 'Has a group that nobody may serve go on from the copy of one node; what only others had is given up.',
  details: [
    'Writes after the last entry of that copy are gone, and reads go back in time once. A node that comes back later learns',
    'the state of the others. "all" forces every such group of which that node has the furthest copy. Kept in the map.',
  ].join('\n'),
  options: {
    ...REMOTE_OPTIONS,
    group: { type: 'string', value: 'G', about: 'number of the group, or all' },
    policy: { type: 'string', value: 'P', about: 'number of its policy (default: 1)' },
    from: { type: 'string', value: 'NODE', about: 'the node that has the copy: see "group candidates"' },
    reason: { type: 'string', value: 'TEXT', about: 'why, for those who ask later' },
    'accept-loss': { type: 'boolean', about: 'what only other copies have is given up' },
  },
  async run(args, terminal) {
    const group = args.text('group');
    if (args.positionals.length > 0 || group === undefined || (group !== 'all' && !/^\d{1,8}$/.test(group))) {
      throw new UsageError(`usage: webdfs ${force.usage}`);
    }
    const query = {
      group,
      policy: String(args.count('policy', 1, { least: 1, most: 65_535 })),
      from: String(args.count('from', 0, { least: 1, most: 65_535 })),
      reason: args.text('reason') ?? '',
      'accept-loss': args.flag('accept-loss') ? 'yes' : 'no',
    };
    using client = await connect(args, terminal);
    const { body } = await client.call({ method: 'POST', bucket: '-', key: 'groups', query });
    tell(JSON.parse(body) as GroupsReport, terminal);
    return EXIT.OK;
  },
};

export const groupCommands: readonly Command[] = [candidates, force];
