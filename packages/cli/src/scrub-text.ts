import type { ScrubReport } from '@webdfs/webdfs/remote';
import { formatBytes } from './terminal.ts';

/** Groups and problems printed; `--json` gives more. */
const MAX_PRINTED = 20;

function copiesLine(what: string, counts: Readonly<Record<string, number>>): string {
  const parts = Object.entries(counts)
    .toSorted((a, b) => Number(b[0]) - Number(a[0]))
    .map(([copies, count]) => `${count} with ${copies}`);
  return `${what} by good copies, as found: ${parts.length === 0 ? 'none' : parts.join(', ')}`;
}

function policyLines(policy: ScrubReport['policies'][number]): string[] {
  const { copies, groups, countedGroups, objects, others, bytes, found, mended, left, problems, omitted } = policy;
  const faults = Object.entries(found).filter(([, count]) => count > 0);
  const lines = [
    `policy ${policy.policy}, ${copies} copies: ${countedGroups} of ${groups} groups counted, ${formatBytes(bytes)}`,
    `  ${copiesLine('objects', objects)}`,
    `  ${copiesLine('what the store keeps for itself', others)}`,
  ];
  if (faults.length > 0 || left > 0) {
    const named = faults.map(([fault, count]) => `${count} ${fault}`).join(', ');
    lines.push(`  wrong copies: ${named === '' ? 'none' : named}; ${mended} mended, ${left} left`);
  }
  for (const problem of problems.slice(0, MAX_PRINTED)) {
    const { bucket, key, what, wrong, why } = problem;
    const name = bucket === undefined ? key : `s3://${bucket}/${key}`;
    const at = wrong.map(({ node, fault }) => `${fault} at node ${node}`).join(', ');
    const end = problem.mended ? 'mended' : `NOT MENDED${why === undefined ? '' : `: ${why}`}`;
    lines.push(`  ${name}, ${what}: ${at === '' ? `${problem.copies} good copies` : at}; ${end}`);
  }
  const more = omitted + problems.length - Math.min(problems.length, MAX_PRINTED);
  if (more > 0) lines.push(`  and ${more} more`);
  return lines;
}

function verdict(report: ScrubReport): string {
  if (report.state === 'none') return 'No pass was ever begun: begin one with --now.';
  if (report.clean) return 'Complete: everything was counted, and every copy is good.';
  if (report.complete) return 'Complete: everything was counted. Not every copy was good: see above.';
  const state = report.state === 'running' ? 'a pass is under way' : 'nobody goes on with it';
  return `NOT COMPLETE: ${state}; what is not counted may be in any state.`;
}

function uncountedLines({ notCounted, notCountedGroups, nodes }: ScrubReport): string[] {
  const named = notCounted.slice(0, MAX_PRINTED);
  const lines = named.map(({ policy, group, why }) => `not counted: group ${policy}/${group}: ${why}`);
  if (notCountedGroups > named.length) lines.push(`not counted: ${notCountedGroups - named.length} groups more`);
  for (const { node, state, why, volumes } of nodes.filter(({ isRead }) => !isRead)) {
    const how = volumes === undefined ? (why ?? state) : `${volumes.read} of ${volumes.of} volumes read`;
    lines.push(`not read to the end: node ${node}: ${how}`);
  }
  return lines;
}

/** A report for people to read: what was counted, what was wrong, what was not counted, and what that amounts to. */
export function scrubText(report: ScrubReport): string[] {
  const { pass, policies, lastComplete } = report;
  const lines: string[] = [];
  if (pass !== undefined) {
    lines.push(`pass of ${pass.began}, ${formatBytes(pass.bytesPerSecond)}/s at each node`);
    for (const policy of policies) lines.push(...policyLines(policy));
    lines.push(...uncountedLines(report));
  }
  lines.push(verdict(report));
  if (!report.complete && lastComplete !== undefined) {
    lines.push(`The last complete pass ended ${lastComplete.ended}, with ${lastComplete.objects} objects.`);
  }
  return lines;
}
