import { codeOf, type NodeId, type Revision } from '@webdfs/base';
import { formatDocument } from '../documents.ts';
import { liveKey, MAP_KEY, sliceKey } from '../keys.ts';
import type { ClusterMap, GroupView } from '../map.ts';
import type { Transaction, Write } from '../map-store.ts';
import type { MapSnapshot } from '../map-view.ts';
import { isSpent, proposeAccused, proposeLost, proposeUnmark } from '../marks.ts';
import { type CaughtUp, joinChanges, type MembershipChange, propose, type Proposal } from '../propose.ts';
import { proposeAbort, proposeTarget } from '../retarget.ts';
import { planRegistration } from '../registration.ts';
import { FIRST_POLICY } from '../create-cluster.ts';
import { canSettle, proposeSettle, proposeSweep, sweepable } from '../upkeep.ts';
import { GROUPS, isAhead, keyOf, type World, type WorldEntry, type WorldNode } from './world.ts';

/** What can happen in a world. Each event looks for something it can do, and does nothing if there is none. */

function attempt(world: World, group: number, map: MapSnapshot, change: MembershipChange): Proposal | undefined {
  try {
    return flawed(world, propose(map, keyOf(group), change), map.group(keyOf(group)));
  } catch (error) {
    if (codeOf(error) === 'CONFLICT' || codeOf(error) === 'NO_QUORUM') return undefined;
    throw error;
  }
}

/** A proposal as one would make it who had forgotten a rule. */
function flawed(world: World, proposal: Proposal, view: GroupView): Proposal {
  const sessions = unasked(world, view, proposal.override.members);
  if (sessions.length > 0) {
    const compare = proposal.transaction.compare.filter(
      (each) => each.type === 'range' || !sessions.includes(each.key),
    );
    return { ...proposal, transaction: { ...proposal.transaction, compare } };
  }
  const forgets = world.has('an override forgets who may still serve');
  const keeps = world.has('eligible nodes stay so when enough are in sync');
  if (!forgets && !keeps) return proposal;
  const override = {
    ...proposal.override,
    from: forgets ? [] : proposal.override.from,
    eligible: keeps
      ? view.eligible.filter((node) => !proposal.override.members.includes(node))
      : proposal.override.eligible,
  };
  const [write] = proposal.transaction.write as [Extract<Write, { type: 'put' }>];
  const transaction = { ...proposal.transaction, write: [{ ...write, value: formatDocument(override) }] };
  return { ...proposal, override, transaction };
}

/** The sessions that are not compared though they should. */
function unasked(world: World, view: GroupView, members: readonly NodeId[]): readonly string[] {
  if (world.has('the session of the primary is not compared') && view.primary !== undefined) {
    return [liveKey(view.primary)];
  }
  if (!world.has('the session of a learner is not compared')) return [];
  return members.filter((node) => node !== view.primary).map(liveKey);
}

function withoutHistory(world: World, transaction: Transaction): Transaction {
  if (!world.has('a mark forgets those before it')) return transaction;
  const write = transaction.write.map((each): Write => {
    if (each.type === 'delete' || !each.key.startsWith('down/')) return each;
    const { reason, session } = JSON.parse(each.value) as { reason: string; session: Revision };
    return { ...each, value: JSON.stringify({ reason, session }) };
  });
  return { ...transaction, write };
}

function start(world: World): void {
  const node = world.pick(world.nodes.filter(({ running }) => !running));
  if (node === undefined) return;
  const map = world.now;
  const facts = { node: node.id, address: 'a', disk: node.diskId };
  const plan = planRegistration(map, facts, node.memory);
  const old = map.live(node.id)?.session ?? 0;
  const live = { pid: 1, startedMs: 0 };
  const isUnmarked = world.has('a new disk is registered without a mark');
  const transaction = withoutHistory(world, {
    compare: [...plan.compare, { type: 'modified', key: liveKey(node.id), is: old }],
    write: [
      ...plan.write.filter(({ key }) => !(isUnmarked && key.startsWith('down/'))),
      { type: 'put', key: liveKey(node.id), value: formatDocument(live) },
    ],
  });
  if (!world.transact(transaction)) return;
  // what a learner had gathered it may gather again
  for (const [group, log] of node.logs.entries()) {
    const view = world.view(group);
    if (!view.inSync.includes(node.id) && !view.eligible.includes(node.id)) log.length = 0;
  }
  node.running = true;
  node.memory = plan.memory;
  node.session = world.now.revision;
  node.view = world.now;
}

function crash(world: World): void {
  const node = world.pick(world.nodes.filter(({ running }) => running));
  if (node === undefined) return;
  node.running = false;
  node.serving.fill(0);
  // most crashes are noticed before the next start, and a few wipe the disk
  if (world.random.fraction() < 0.6) world.loseSession(node);
  if (world.random.fraction() > 0.2) return;
  world.count++;
  node.diskId = `disk ${node.id}, exchange ${world.count}`;
  node.memory = undefined;
  for (const log of node.logs) log.length = 0;
}

function loseLease(world: World): void {
  const node = world.pick(world.nodes.filter(({ id }) => world.now.live(id) !== undefined));
  if (node === undefined) return;
  world.loseSession(node);
  // a node that still runs has stopped serving before, and registers again
  node.running = false;
  node.serving.fill(0);
}

/** One node at a time hears late of the map: a stuck watch, a pause, a slow machine. */
function isHeldUp(world: World, node: WorldNode): boolean {
  return node.id === world.slow && world.random.fraction() < 0.9;
}

function slowDown(world: World): void {
  world.slow = world.pick(world.nodes)!.id;
}

function learn(world: World): void {
  const node = world.pick(world.nodes);
  if (node === undefined || !node.running || isHeldUp(world, node)) return;
  const behind = world.now.revision - node.view.revision;
  if (behind === 0) return;
  const ahead = world.random.fraction() < 0.7 ? behind : 1 + world.random.below(behind);
  node.view = world.snapshots.find(({ revision }) => revision >= node.view.revision + ahead)!;
}

function judge(world: World): void {
  const map = world.someMap();
  const node = world.pick(world.nodes);
  if (node === undefined || !map.nodes().includes(node.id)) return;
  const controller = world.controller;
  const isLive = map.live(node.id) !== undefined;
  if (isLive && world.random.fraction() < 0.7) return;
  const inSync = Array.from({ length: GROUPS }, (_, group) => map.group(keyOf(group)).inSync).flat();
  if (!inSync.includes(node.id)) return;
  world.transact(
    withoutHistory(
      world,
      isLive ? proposeAccused(map, node.id, 'chance', controller) : proposeLost(map, node.id, controller),
    ),
  );
}

function restore(world: World): void {
  const map = world.someMap();
  const group = world.random.below(GROUPS);
  const view = map.group(keyOf(group));
  if (view.inSync.length >= view.minCopies) return;
  const nodes = view.eligible.filter((id) => map.live(id) !== undefined);
  if (nodes.length === 0) return;
  const proposal = attempt(world, group, map, { type: 'restore', controller: world.controller, nodes });
  if (proposal !== undefined) world.transact(proposal.transaction);
}

/** The controller takes the primacy of a group from a node that may still serve. */
function depose(world: World): void {
  const map = world.someMap();
  const group = world.random.below(GROUPS);
  if (map.group(keyOf(group)).primary === undefined) return;
  const proposal = attempt(world, group, map, { type: 'depose', controller: world.controller });
  if (proposal !== undefined) world.transact(proposal.transaction);
}

function unmark(world: World): void {
  const map = world.someMap();
  const early = world.has('marks are removed early');
  const node = world.pick(map.marked().filter((id) => early || isSpent(map, id)));
  if (node !== undefined) world.transact(proposeUnmark(map, node, world.controller));
}

function sweep(world: World): void {
  const map = world.someMap();
  if (sweepable(map, FIRST_POLICY, 0).length === 0) return;
  if (map.marked().length === 0) {
    const transaction = proposeSweep(map, FIRST_POLICY, 0, world.controller);
    const isPartial = world.has('a slice is swept without being rewritten');
    world.transact({ ...transaction, write: transaction.write.filter(({ type }) => !isPartial || type === 'delete') });
  } else if (world.has('slices are swept while nodes are marked')) {
    const deletes = sweepable(map, FIRST_POLICY, 0).map(({ group }): Write => ({
      type: 'delete',
      key: `group/${FIRST_POLICY}/${group}`,
    }));
    world.transact({ compare: [], write: [...deletes, { type: 'put', key: sliceKey(FIRST_POLICY, 0), value: '{}' }] });
  }
}

function changeTopology(world: World): void {
  const map = world.someMap();
  if (canSettle(map)) {
    world.transact(proposeSettle(map, world.controller));
    return;
  }
  if (world.options.changesPolicies === true) return changePolicy(world, map);
  const { target, ...rest } = map.map;
  const isWhole = map.map.settled.subclusters[0]!.nodes.length === world.nodes.length;
  let next: ClusterMap = { ...rest, target: world.topology(!isWhole) };
  if (target !== undefined) {
    if (world.random.fraction() < 0.8) return;
    next = rest;
  }
  world.transact({
    compare: [{ type: 'modified', key: MAP_KEY, is: map.mapRevision }],
    write: [{ type: 'put', key: MAP_KEY, value: formatDocument(next) }],
  });
}

/** As an operator does it: another target, another number of copies with it, or all of it given up. */
function changePolicy(world: World, map: MapSnapshot): void {
  if (map.map.target !== undefined) {
    const chance = world.random.fraction();
    if (chance < 0.04) world.transact(proposeAbort(map));
    if (chance < 0.92) return;
  }
  const copies = 1 + world.random.below(Math.min(3, world.nodes.length - 1));
  const minCopies = 1 + world.random.below(copies);
  const policies = new Map(world.random.fraction() < 0.3 ? [] : [[FIRST_POLICY, { copies, minCopies }]]);
  world.transact(proposeTarget(map, world.topology(world.random.fraction() < 0.5), { policies }));
}

/** The node that believes it is primary of a group, by its own map and with its lease. */
function primaryOf(world: World, group: number): { node: WorldNode; view: GroupView } | undefined {
  const believers = world.nodes.filter((node) => {
    if (!world.isLive(node)) return false;
    const view = node.view.group(keyOf(group));
    return view.primary === node.id && view.session === node.session && node.yielded[group] !== view.ballot;
  });
  const node = world.pick(believers);
  return node && { node, view: node.view.group(keyOf(group)) };
}

/** A fenced node has stopped: its session is gone, or its own map knows of the new ballot. */
function isFenceOver(world: World, view: GroupView): boolean {
  if (world.has('nobody waits for a fenced primary')) return true;
  return view.fence.every(({ node, session }) => {
    const fenced = world.node(node);
    return world.now.live(node)?.session !== session || fenced.view.revision >= view.ballot;
  });
}

/** All in-sync members run and believe in the same ballot. */
function membersAgree(world: World, group: number, view: GroupView): boolean {
  return view.inSync.every((id) => {
    const member = world.node(id);
    return member.running && member.view.group(keyOf(group)).ballot === view.ballot;
  });
}

/** Learners that commits wait for, in the sessions in which they caught up. */
function learnersOf(world: World, group: number, primary: WorldNode): readonly CaughtUp[] {
  if (world.has('a learner counts before it is waited for')) return [];
  return world.joins
    .filter((join) => join.group === group && join.primary === primary.id && join.session === primary.session)
    .flatMap(({ learners }) => learners);
}

function setLog(node: WorldNode, group: number, log: readonly WorldEntry[]): void {
  const own = node.logs[group]!;
  own.length = 0;
  own.push(...log);
}

function takeOver(world: World): void {
  const group = world.random.below(GROUPS);
  const found = primaryOf(world, group);
  if (found === undefined) return;
  const { node, view } = found;
  if (node.serving[group] === view.ballot) return;
  if (!membersAgree(world, group, view) || !isFenceOver(world, view)) return;
  const logs = view.inSync.map((id) => world.node(id).logs[group]!);
  let best: readonly WorldEntry[] = logs[0]!;
  for (const log of logs) if (isAhead(log, best)) best = log;
  const adopted = [...best];
  for (const id of view.inSync) setLog(world.node(id), group, adopted);
  for (const learner of learnersOf(world, group, node)) {
    const other = world.node(learner.node);
    if (other.running && other.session === learner.session) setLog(other, group, adopted);
    else return;
  }
  node.serving[group] = view.ballot;
  if (view.inSync.length >= view.minCopies) tell(world, group, adopted);
}

/** A log that clients may now have been told of. */
function tell(world: World, group: number, log: readonly WorldEntry[]): void {
  world.history[group] = [...log];
}

function write(world: World): void {
  const group = world.random.below(GROUPS);
  const found = primaryOf(world, group);
  if (found === undefined || found.node.serving[group] !== found.view.ballot) return;
  const { node, view } = found;
  if (view.inSync.length < view.minCopies) return;
  world.count++;
  const entry = { ballot: view.ballot, id: world.count };
  const learners = learnersOf(world, group, node).filter((learner) => !view.inSync.includes(learner.node));
  const others = [...view.inSync.filter((id) => id !== node.id).map((id) => ({ node: id, session: 0 })), ...learners];
  node.logs[group]!.push(entry);
  const isWhole = world.random.fraction() < 0.8;
  const reached = others.filter(({ node: id, session }) => {
    const other = world.node(id);
    const believes = other.view.group(keyOf(group)).ballot === view.ballot;
    const accepts = other.running && (session === 0 ? believes : other.session === session);
    return accepts && (isWhole || world.random.fraction() < 0.5);
  });
  for (const { node: id } of reached) world.node(id).logs[group]!.push(entry);
  if (reached.length === others.length) tell(world, group, node.logs[group]!);
  // somebody lacks the entry: the members must be levelled before the next
  else node.serving[group] = 0;
}

function join(world: World): void {
  const group = world.random.below(GROUPS);
  const found = primaryOf(world, group);
  if (found === undefined || found.node.serving[group] !== found.view.ballot) return;
  const { node, view } = found;
  if (world.joins.some((each) => each.group === group && each.primary === node.id)) return;
  const candidates = view.goal.filter((id) => !view.inSync.includes(id) && world.isLive(world.node(id)));
  const learner = world.pick(candidates);
  const learners = learner === undefined ? [] : [learner];
  if (!joinChanges(view, learners)) return;
  const caughtUp = learners.map((id) => ({ node: id, session: world.node(id).session }));
  const proposal = attempt(world, group, node.view, { type: 'join', learners: caughtUp });
  if (proposal === undefined) return;
  for (const id of learners) setLog(world.node(id), group, node.logs[group]!);
  if (proposal.yields && !world.has('a primary that moves away goes on serving')) {
    node.serving[group] = 0;
    node.yielded[group] = view.ballot;
  }
  world.joins.push({ group, primary: node.id, session: node.session, proposal, learners: caughtUp });
}

/** A primary's change reaches the store, maybe long after it was sent. */
function carryOut(world: World): void {
  const join = world.pick(world.joins.filter(({ done }) => done === undefined));
  if (join !== undefined) join.done = world.transact(join.proposal.transaction);
}

/** The primary, if it is still the one that asked, hears what became of its change; until then it waits for the learner. */
function answer(world: World): void {
  const join = world.pick(world.joins.filter(({ done }) => done !== undefined));
  if (join === undefined || isHeldUp(world, world.node(join.primary))) return;
  world.joins.splice(world.joins.indexOf(join), 1);
  const primary = world.node(join.primary);
  if (!primary.running || primary.session !== join.session) return;
  if (join.done === true) primary.view = world.now;
  else if (join.proposal.yields) primary.yielded[join.group] = 0;
}

function drop(world: World): void {
  const group = world.random.below(GROUPS);
  const found = primaryOf(world, group);
  if (found === undefined) return;
  const { node, view } = found;
  if (world.joins.some((each) => each.group === group && each.primary === node.id)) return;
  const silent = world.pick(view.inSync.filter((id) => id !== node.id));
  if (silent === undefined || (world.node(silent).running && world.random.fraction() < 0.7)) return;
  const isServing = node.serving[group] === view.ballot;
  const proposal = attempt(world, group, node.view, { type: 'drop', node: silent, serving: isServing });
  if (proposal === undefined) return;
  world.transact(proposal.transaction);
  node.view = world.now;
}

const EVENTS: readonly (readonly [weight: number, event: (world: World) => void])[] = [
  [10, start],
  [2, crash],
  [1, loseLease],
  [50, learn],
  [2, slowDown],
  [5, judge],
  [6, restore],
  [5, unmark],
  [4, sweep],
  [4, changeTopology],
  [1, depose],
  [30, takeOver],
  [30, write],
  [14, join],
  [10, carryOut],
  [8, answer],
  [5, drop],
];
const TOTAL = EVENTS.reduce((sum, [weight]) => sum + weight, 0);

/** Lets one thing happen, by chance. */
export function happen(world: World): void {
  let left = world.random.below(TOTAL);
  for (const [weight, event] of EVENTS) {
    left -= weight;
    if (left < 0) return event(world);
  }
}
