import { type GroupKey, messageOf, type NodeId, sleep, utf8, WebdfsError } from '@webdfs/base';
import { objectKey } from '@webdfs/client';
import type { MapView } from '@webdfs/cluster';
import { hashKey } from '@webdfs/placement';
import {
  BLOCK_BYTES,
  blockId,
  decodeVerifyAnswer,
  encodeVerifyRequest,
  etagOf,
  type Layout,
  MAX_VERIFY_ITEMS,
  unpackOwner,
  unpackSummary,
  VERB,
  type VerifyItem,
  type VerifyResult,
} from '@webdfs/replica';
import type { ClusterAccess } from './cluster-access.ts';
import type { CopyReport, PlaceReport, WhereReport } from './reports.ts';

/** Blocks looked at in one report; of a larger object the first ones. */
const MAX_BLOCKS = 1_024;
const VERIFY_MS = 60_000;
/** Bytes that one call has read and verified at most: blocks are up to 8 MiB each. */
const ITEMS_PER_CALL = Math.min(16, MAX_VERIFY_ITEMS);

/**
 * A member that has an entry on its disk applies it once it hears that it is committed: 20 ms later, or with the next message that gets
 * through where a link was just made anew. So it is looked at again after these pauses.
 */
const LATE_PAUSES_MS = [50, 100, 200, 400, 800];

interface Thing {
  readonly what: string;
  readonly item: VerifyItem;
}

function blocksOf(layout: Layout, size: number): Uint8Array[] {
  if (layout.type === 'inline') return [];
  const runs = layout.type === 'blocks' ? [{ attempt: layout.attempt, size }] : layout.parts;
  return runs.flatMap((run) =>
    Array.from({ length: Math.ceil(run.size / layout.blockBytes) }, (_, number) => blockId(run.attempt, number)),
  );
}

function roleOf(view: MapView, group: GroupKey, node: NodeId): CopyReport['role'] {
  const { primary, inSync } = view.group(group);
  if (node === primary) return 'primary';
  return inSync.includes(node) ? 'member' : 'learner';
}

const CHECKSUMS = { intact: 'good', damaged: 'bad', absent: 'unknown' } as const;

/** Asks one node about many things; what cannot be asked is told as a problem. */
async function askNode(
  access: ClusterAccess,
  node: NodeId,
  items: readonly VerifyItem[],
): Promise<(VerifyResult | string)[]> {
  const results: (VerifyResult | string)[] = [];
  for (let at = 0; at < items.length; at += ITEMS_PER_CALL) {
    const part = items.slice(at, at + ITEMS_PER_CALL);
    try {
      const answer = await access.link(node).call(VERB.VERIFY, encodeVerifyRequest(part), { deadlineMs: VERIFY_MS });
      results.push(...decodeVerifyAnswer(answer));
    } catch (error) {
      results.push(...part.map(() => messageOf(error)));
    }
  }
  return results;
}

/** Members in order, then those that should be members and are catching up. */
function holdersOf(view: MapView, group: GroupKey): NodeId[] {
  const { inSync, goal } = view.group(group);
  return [...inSync, ...goal.filter((node) => !inSync.includes(node))];
}

function copyOf(view: MapView, thing: Thing, node: NodeId, result: VerifyResult | string): CopyReport {
  const role = roleOf(view, thing.item, node);
  if (typeof result === 'string') return { node, role, present: false, checksum: 'unknown', problem: result };
  return {
    node,
    role,
    present: result.state !== 'absent',
    checksum: CHECKSUMS[result.state],
    ...(result.state === 'absent' ? {} : { version: result.sequence }),
  };
}

async function inspect(access: ClusterAccess, view: MapView, things: readonly Thing[]): Promise<PlaceReport[]> {
  const byNode = new Map<NodeId, Thing[]>();
  for (const thing of things) {
    for (const node of holdersOf(view, thing.item)) byNode.set(node, [...(byNode.get(node) ?? []), thing]);
  }
  const answers = new Map<Thing, Map<NodeId, VerifyResult | string>>();
  await Promise.all(
    Array.from(byNode, async ([node, asked]) => {
      const results = await askNode(
        access,
        node,
        asked.map((thing) => thing.item),
      );
      for (const [index, thing] of asked.entries()) {
        const known = answers.get(thing) ?? new Map<NodeId, VerifyResult | string>();
        answers.set(thing, known.set(node, results[index] ?? 'no answer'));
      }
    }),
  );
  return things.map((thing) => {
    const { primary, inSync } = view.group(thing.item);
    const copies = holdersOf(view, thing.item).map((node) =>
      copyOf(view, thing, node, answers.get(thing)?.get(node) ?? 'not asked'),
    );
    return { what: thing.what, group: thing.item.group, members: inSync, primary, copies };
  });
}

/** Members do not agree, and none has said why: one of them may not have heard of a commit yet. */
export function isLate({ copies }: PlaceReport): boolean {
  const members = copies.filter(({ role }) => role !== 'learner');
  if (members.some(({ checksum, problem }) => checksum === 'bad' || problem !== undefined)) return false;
  return members.some(({ present, version }) => !present || version !== members[0]!.version);
}

async function inspectSettled(access: ClusterAccess, view: MapView, things: readonly Thing[]): Promise<PlaceReport[]> {
  const places = await inspect(access, view, things);
  for (const pauseMs of LATE_PAUSES_MS) {
    const late = [...places.keys()].filter((index) => isLate(places[index]!));
    if (late.length === 0) break;
    await sleep(access.clock, pauseMs);
    const again = await inspect(
      access,
      view,
      late.map((index) => things[index]!),
    );
    for (const [at, index] of late.entries()) places[index] = again[at]!;
  }
  return places;
}

/** Present, good, of one version on all that must have it, and on as many as the policy wants. */
function isSound(view: MapView, place: PlaceReport, group: GroupKey): boolean {
  const { copies } = view.group(group);
  if (place.copies.length < copies || place.members.length < copies) return false;
  return place.copies.every((copy) => copy.checksum === 'good' && copy.version === place.copies[0]!.version);
}

function stepsOf(options: {
  view: MapView;
  bucketId: number;
  key: string;
  thing: Thing;
  hash: number;
  blocks: number;
  shown: number;
}): string[] {
  const { view, thing, hash } = options;
  const { map } = view;
  const group = view.group(thing.item);
  const names = group.inSync.map((node) => (node === group.primary ? `${node} (primary)` : String(node))).join(', ');
  const placed = `${map.settled.algorithm} version ${map.settled.version} places group ${thing.item.group} on nodes ${group.goal.join(', ')}`;
  return [
    `The key is bucket number ${options.bucketId} and the bytes of ${JSON.stringify(options.key)}; its hash begins with ${hash.toString(16).padStart(8, '0')}.`,
    `The first ${map.groupBits} bits of it name group ${thing.item.group} of ${2 ** map.groupBits}.`,
    `${placed}${group.overridden ? '; the map has an override for it' : ''}.`,
    `In sync at epoch ${view.revision}: nodes ${names === '' ? 'none' : names}; ballot ${group.ballot}.`,
    ...(options.blocks > 0
      ? [
          options.blocks === 1
            ? 'Its bytes lie in one block, in a group of its own.'
            : `Its bytes lie in ${options.blocks} blocks of up to ${BLOCK_BYTES / 1024 / 1024} MiB, each in a group of its own.`,
        ]
      : []),
    ...(options.shown < options.blocks ? [`Only the first ${options.shown} blocks were verified.`] : []),
  ];
}

/**
 * Where an object lies and why, every copy read and verified now.
 *
 * @param first  the block to begin with; of a large object one report shows only so many
 * @throws NOT_FOUND and what reading throws
 */
export async function whereReport(
  access: ClusterAccess,
  { bucket: bucketName, key, first = 0 }: { bucket: string; key: string; first?: number },
): Promise<WhereReport> {
  const { policy } = access;
  if (!Number.isInteger(first) || first < 0) throw new WebdfsError('INVALID', `no block ${first}`);
  const bucket = await access.objects.bucket(bucketName);
  const record = objectKey(bucket.id, utf8(key));
  const hash = hashKey(record);
  const group = access.groups.groupOf(policy, hash.high);
  const answer = await access.groups.read({ ...group, key: record, entry: true });
  if (answer === undefined) {
    throw new WebdfsError('NOT_FOUND', `there is no object s3://${bucketName}/${key}`, { details: { what: 'key' } });
  }
  const { size } = unpackSummary(answer.summary);
  const blocks = blocksOf(unpackOwner(answer.owner, answer.body).layout, size);
  const shown = blocks.slice(first, first + MAX_BLOCKS);
  const things: Thing[] = [
    { what: 'record', item: { type: 'record', ...group, id: record } },
    ...shown.map((id, number): Thing => {
      const of = access.groups.groupOf(policy, hashKey(id).high);
      return { what: `block ${first + number}`, item: { type: 'block', ...of, id } };
    }),
  ];
  const { view } = access.map;
  const places = await inspectSettled(access, view, things);
  return {
    bucket: bucketName,
    key,
    size,
    etag: etagOf(answer.summary),
    epoch: view.revision,
    steps: stepsOf({
      view,
      bucketId: bucket.id,
      key,
      thing: things[0]!,
      hash: hash.high,
      blocks: blocks.length,
      shown: shown.length,
    }),
    places,
    blocks: blocks.length,
    firstBlock: first,
    sound: places.every((place, index) => isSound(view, place, things[index]!.item)),
  };
}
