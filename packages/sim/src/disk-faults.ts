import type { DiskAction, SimulatedDisk } from '@webdfs/base/testing';
import { DISK_MS, type SimulatedMachine } from './machine.ts';
import { SCALE } from './scale.ts';
import { type Blow, type Sky, startLater } from './sky.ts';

export const DISK_FAULTS = [
  'sync-fails',
  'write-fails',
  'read-fails',
  'short-writes',
  'full-disk',
  'slow-disk',
  'bit-flips',
  'new-disk',
  'old-disk',
] as const;

/** Beyond what is on a disk that is full. */
const LEFT_BYTES = 120_000;
const SHORT_WRITES = 20;

function fill({ disk, node }: SimulatedMachine, { random, lasts, aWhile }: Sky): void {
  let used = 0;
  for (const [, inode] of disk.files()) used += inode.size;
  disk.limit(used + random.below(LEFT_BYTES));
  lasts(aWhile(), `the disk of node ${node} is full`, () => disk.limit(SCALE.diskBytes));
}

/** Every operation takes up to seconds: none fails, and the node may still think well of its disk. */
function slow(machine: SimulatedMachine, { random, lasts, aWhile }: Sky): void {
  const ms = random.below(2) === 0 ? 50 + 200 * random.fraction() : 1_000 + 4_000 * random.fraction();
  machine.diskMs = ms;
  lasts(aWhile(), `the disk of node ${machine.node} takes up to ${Math.round(ms)} ms`, () => {
    machine.diskMs = DISK_MS;
  });
}

function trouble(machine: SimulatedMachine, actions: readonly DiskAction[], fate: 'fail' | 'short', sky: Sky): void {
  let left = fate === 'short' ? SHORT_WRITES : 1;
  machine.fate = ({ action }) => {
    if (left === 0 || !actions.includes(action) || sky.random.below(3) > 0) return undefined;
    left -= 1;
    return fate;
  };
  sky.cluster.tell(`weather: ${actions.join(', ')}: ${fate}, at node ${machine.node}`);
}

function replace(machine: SimulatedMachine, copy: SimulatedDisk | undefined, sky: Sky): void {
  const { node } = machine;
  sky.invariants.harmed.add(node);
  machine.crash('power');
  sky.cluster.tell(`weather: node ${node} gets ${copy === undefined ? 'an empty disk' : 'an old disk'}`);
  machine.replaceDisk(copy);
  if (!sky.off.has(machine)) startLater(machine, sky);
}

/** A snapshot of the disk is made, and put back a while later. */
function putBack(machine: SimulatedMachine, sky: Sky): void {
  // what is being opened has no whole state to go back to
  if (machine.life === undefined) return;
  const { node } = machine;
  const copy = machine.copyDisk();
  sky.cluster.tell(`weather: a snapshot is made of node ${node}`);
  sky.cluster.clock.after(sky.aWhile(), () => {
    // by then it may play another node, with another disk
    if (!sky.isOver() && machine.isPlaced && machine.node === node) replace(machine, copy, sky);
  });
}

function flip({ disk, node }: SimulatedMachine, { random, cluster, invariants }: Sky): void {
  invariants.flips(node);
  const volumes = [...disk.files()].filter(([path, { size }]) => path.endsWith('.vol') && size > 64);
  for (let i = 0; i < 1 + random.below(4); i++) {
    const volume = volumes[random.below(volumes.length)];
    if (volume === undefined) return;
    const [path, inode] = volume;
    const offset = random.below(inode.size);
    inode.flip(offset, random.below(8));
    cluster.tell(`weather: a bit turns over in ${path} of node ${node}, at ${offset}`);
  }
}

/** Disks fail, fill up, slow down, rot, and are exchanged. */
export function diskFaults(sky: Sky): Record<(typeof DISK_FAULTS)[number], Blow> {
  return {
    'sync-fails': (machine) => trouble(machine, ['datasync', 'sync'], 'fail', sky),
    'write-fails': (machine) => trouble(machine, ['writev', 'writevSync'], 'fail', sky),
    'read-fails': (machine) => trouble(machine, ['read', 'readSync'], 'fail', sky),
    'short-writes': (machine) => trouble(machine, ['writev', 'writevSync'], 'short', sky),
    'full-disk': (machine) => fill(machine, sky),
    'slow-disk': (machine) => slow(machine, sky),
    'bit-flips': (machine) => flip(machine, sky),
    'new-disk': (machine) => replace(machine, undefined, sky),
    'old-disk': (machine) => putBack(machine, sky),
  };
}
