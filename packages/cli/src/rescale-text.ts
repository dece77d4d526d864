import type { RescaleHistory, RescaleProgress, RescaleSummary, TopologyReport } from '@webdfs/webdfs';
import { formatBytes, formatDuration, formatTable } from './terminal.ts';

/** What is known of a rescale, in words. */

type Timed = Pick<RescaleSummary, 'bound' | 'plan'>;

/** `3.2 s` where a second counts, else as durations are. */
function secondsText(seconds: number): string {
  return seconds < 60 ? `${seconds.toFixed(1)} s` : formatDuration(seconds);
}

function timesText({ bound, plan }: Timed): string {
  if (bound === undefined || plan === undefined) return 'bound: measuring';
  return `bound ${secondsText(bound.seconds)} (${bound.by}), plan ${secondsText(plan.seconds)} (${plan.by} of node ${plan.node})`;
}

function paceText({ secondsLeft, pace }: RescaleProgress): string {
  if (secondsLeft === undefined || pace === undefined) return 'time left: measuring';
  return `${formatDuration(secondsLeft)} left (${pace.resource} of node ${pace.node})`;
}

function shareText({ bytesLeft, change }: RescaleProgress): string {
  const bytes = change?.planned.bytes;
  if (bytes === undefined || bytes === 0) return `${formatBytes(bytesLeft)} to move`;
  const done = Math.max(0, bytes - bytesLeft);
  return `${Math.floor((100 * done) / bytes)} %, ${formatBytes(done)} of ${formatBytes(bytes)}`;
}

/** How far a change is, in one line. */
export function progressText({ groups, atGoal, paused, target, moving }: TopologyReport): string {
  if (moving === undefined || groups === atGoal) {
    return target === undefined
      ? 'every group is where it should be'
      : 'every group is where it should be; about to settle';
  }
  const { groupsLeft, bytesPerSecond, change } = moving;
  const what = `${shareText(moving)}, ${groupsLeft} of ${groups} groups left`;
  if (paused) return `${what}; paused: "webdfs cluster rescale resume"`;
  const rate = bytesPerSecond > 0 ? `, ${formatBytes(bytesPerSecond)}/s` : '';
  return `${what}${rate}, ${paceText(moving)}${change === undefined ? '' : `; ${timesText(change)}`}`;
}

/** The same with what each node has to do. */
export function statusText(report: TopologyReport): string {
  const { moving } = report;
  if (moving === undefined) return progressText(report);
  const rows = moving.nodes.map((node) => [
    String(node.node),
    formatBytes(node.receiveLeft),
    `${formatBytes(node.receivePerSecond)}/s`,
    formatBytes(node.sendLeft),
    `${formatBytes(node.sendPerSecond)}/s`,
    node.secondsLeft === undefined ? 'measuring' : secondsText(node.secondsLeft),
  ]);
  const { change } = moving;
  return [
    ...(change === undefined ? ['Copies that were lost are made anew.'] : [`${change.command}, since ${change.began}`]),
    progressText(report),
    ...(rows.length === 0
      ? []
      : [formatTable(['node', 'to receive', 'receives', 'to send', 'sends', 'time left'], rows)]),
  ].join('\n\n');
}

function ratio(value: number | undefined): string {
  return value === undefined ? '-' : value.toFixed(2);
}

/** What became of a change that is over. */
export function summaryText(summary: RescaleSummary): string {
  const { moved, planned, seconds, ratios } = summary;
  const of = planned.bytes === undefined ? '' : ` of ${formatBytes(planned.bytes)} planned`;
  const first = `${formatBytes(moved.bytes)}${of} moved in ${moved.groups} groups, ${secondsText(seconds)}; ${timesText(summary)}.`;
  if (ratios?.total === undefined) return first;
  const { move, place, exec, total } = ratios;
  return `${first}\nBy the least bytes ${ratio(move)}, plan by bound ${ratio(place)}, time by plan ${ratio(exec)}, time by bound ${ratio(total)}.`;
}

export function historyText({ rescales }: RescaleHistory): string {
  if (rescales.length === 0) return 'The cluster has had one shape since it was made.';
  const rows = rescales.map((each) => [
    String(each.number),
    each.began.slice(0, 19).replace('T', ' '),
    each.command,
    each.outcome,
    `${each.moved.groups}/${each.planned.groups}`,
    formatBytes(each.moved.bytes),
    each.planned.bytes === undefined ? '-' : formatBytes(each.planned.bytes),
    secondsText(each.seconds),
    each.bound === undefined ? '-' : secondsText(each.bound.seconds),
    ratio(each.ratios?.move),
    ratio(each.ratios?.place),
    ratio(each.ratios?.exec),
    ratio(each.ratios?.total),
  ]);
  const head = [
    '',
    'began (UTC)',
    'command',
    'end',
    'groups',
    'moved',
    'planned',
    'took',
    'bound',
    'move',
    'place',
    'exec',
    'total',
  ];
  return formatTable(head, rows);
}
