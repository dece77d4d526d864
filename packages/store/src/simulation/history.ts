import assert from 'node:assert/strict';
import { asGroupId, asPolicyId, SeededRandom, toHex } from '@webdfs/base';
import type { Crash, DiskAction, DiskFate, DiskOperation } from '@webdfs/base/testing';
import type { Store } from '../store.ts';
import { checkContent, recoverGroup } from './checks.ts';
import type { CrashPoints } from './crash-points.ts';
import { isSync, type Life, Machine } from './machine.ts';
import { GroupModel } from './model.ts';
import { Rot } from './rot.ts';
import { Steps } from './steps.ts';

const GROUPS = 4;
/** Operations of the store that may be under way at once. */
const MOST_OPEN = 12;
const LONGEST_LIFE_STEPS = 90;
/** Operations that leave something behind. */
const CHANGES = new Set<DiskAction>([
  'create',
  'writev',
  'sync',
  'datasync',
  'syncFolder',
  'rename',
  'unlink',
  'removeFolder',
  'makeFolder',
]);

export interface HistoryOptions {
  readonly seed: number;
  readonly points: CrashPoints;
  /** Bits of durable bytes turn over in the end. */
  readonly rot?: boolean;
  /** A mutant: syncs that do nothing and report success. */
  readonly lies?: (operation: DiskOperation) => boolean;
  /** Hears what happens, for whoever looks for a bug. */
  readonly trace?: (line: string) => void;
}

/** How a life will end: at this operation of the disk, with this fate; `stop` ends it at once. */
interface Ending {
  readonly at: number;
  readonly fate: DiskFate;
}

/**
 * One random history of a store on a simulated disk: lives of puts, deletes, blocks, notes, cuts, marks, drops, learning and
 * compaction, each ended by a crash at a random disk operation, in recovery too; after each, all that was answered must be
 * there and nothing else. Everything comes from the seed.
 */
export class History {
  readonly #random: SeededRandom;
  readonly #points: CrashPoints;
  readonly #machine: Machine;
  readonly #groups: GroupModel[];
  readonly #steps: Steps;
  readonly #rots: boolean;
  #rebuilt = false;

  constructor(options: HistoryOptions) {
    const random = new SeededRandom(options.seed);
    const { points, lies, trace } = options;
    this.#random = random;
    this.#points = points;
    this.#rots = options.rot ?? false;
    this.#machine = new Machine({ random, points, lies, trace });
    this.#groups = Array.from({ length: GROUPS }, (_, i) => {
      return new GroupModel({ policy: asPolicyId(1), group: asGroupId(i) });
    });
    this.#steps = new Steps({ machine: this.#machine, random, points, groups: this.#groups });
  }

  async run(): Promise<void> {
    await this.#machine.format();
    const lives = 2 + this.#random.below(4);
    for (let number = 0; number < lives; number++) {
      const life = await this.#begin();
      await this.#check(life.store);
      await this.#live(life);
      await this.#end(life);
    }
    if (this.#rots) {
      const { random, groups, points } = { random: this.#random, groups: this.#groups, points: this.#points };
      return await new Rot({ machine: this.#machine, random, groups, points }).run((store) => this.#check(store));
    }
    const last = await this.#begin();
    await this.#check(last.store);
    await this.#finish(last);
    await this.#doNothing();
  }

  // ---- lives ----

  #someCrash(): Crash {
    return this.#random.below(2) === 0 ? 'kill' : 'power';
  }

  /** Opens the store, through crashes inside recovery if it comes to that. */
  async #begin(): Promise<Life> {
    const random = this.#random;
    const machine = this.#machine;
    let tries = random.below(3) === 0 ? 1 + random.below(3) : 0;
    for (;;) {
      if (random.below(6) === 0) {
        await machine.loseIndex();
        this.#rebuilt = true;
      }
      // Most operations of a recovery read; what changes something is where it hurts.
      let left = tries > 0 ? random.below(random.below(2) === 0 ? 20 : 60) : Infinity;
      const fails = random.below(6) === 0;
      const fate = (operation: DiskOperation): DiskFate => {
        if (!CHANGES.has(operation.action)) return undefined;
        left -= 1;
        if (left !== 0) return undefined;
        if (!fails || !isSync(operation)) return 'stop';
        this.#points.totals.failedSyncs += 1;
        return 'fail';
      };
      const life = await machine.begin(fate, fails);
      if (life !== undefined) return life;
      tries -= 1;
      machine.crash(this.#someCrash());
    }
  }

  async #check(store: Store): Promise<void> {
    assert.deepEqual(await store.damage(), [], 'no damage where nothing was damaged');
    const how = { random: this.#random, rebuilt: this.#rebuilt };
    for (const model of this.#groups) await recoverGroup(store, model, how);
    this.#rebuilt = false;
    const { file } = this.#steps;
    const known = await store.loadFile('map');
    const allowed = [file.known, ...file.sent].map((bytes) => (bytes === undefined ? '' : toHex(bytes)));
    assert.ok(allowed.includes(known === undefined ? '' : toHex(known)), 'a small file is old or new');
    this.#steps.file = { known, sent: [] };
  }

  async #live(life: Life): Promise<void> {
    const random = this.#random;
    const machine = this.#machine;
    this.#points.watch(life.disk, 'life');
    machine.hook(life.disk, this.#fate(this.#ending()));
    const steps = 10 + random.below(LONGEST_LIFE_STEPS);
    for (let step = 0; step < steps && life.disk.running && !life.failed; step++) {
      this.#steps.step(life);
      await machine.turns(life, random.below(5));
      if (random.below(8) === 0) machine.clock.advance(1 + random.below(60));
      if (random.below(25) === 0) machine.clock.advance(1_000 + random.below(40_000));
      await machine.untilOpen(life, MOST_OPEN);
      if (random.below(30) === 0) await this.#quiet(life);
    }
  }

  #ending(): Ending {
    const at = this.#machine.disk.operations + 1 + this.#random.below(500);
    const kind = this.#random.below(10);
    return { at, fate: kind < 7 ? 'stop' : kind < 9 ? 'fail' : 'full' };
  }

  #fate({ at, fate }: Ending): (operation: DiskOperation) => DiskFate {
    return (operation) => {
      if (operation.number < at) return undefined;
      if (fate === 'stop') return 'stop';
      if (operation.number > at + 40) return undefined;
      const sync = isSync(operation);
      if (!sync && (fate === 'fail' || operation.action !== 'writev')) return undefined;
      if (fate === 'fail') this.#points.totals.failedSyncs += 1;
      else this.#points.reached(sync ? 'C17 disk full at a sync' : 'C17 disk full at a write');
      return fate;
    };
  }

  async #end(life: Life): Promise<void> {
    const random = this.#random;
    if (life.disk.running && !life.failed && random.below(4) === 0) {
      life.disk.onOperation = undefined;
      await this.#finish(life);
    } else if (life.disk.running && random.below(3) === 0) {
      // Stopped between two operations of the disk, wherever the store is then.
      await this.#machine.turns(life, random.below(40));
    }
    if (this.#groups.some((model) => model.state === 'dropping')) this.#points.reached('C18 group is being dropped');
    this.#machine.crash(this.#someCrash(), life);
  }

  /** Waits until all is answered, compares, and closes the store in peace. */
  async #finish(life: Life): Promise<void> {
    await this.#quiet(life);
    const scrubbed = await this.#machine.drive(life.store.scrub({ bytesPerSecond: Infinity }), life);
    if (scrubbed !== undefined && scrubbed.damaged > 0) assert.fail(JSON.stringify(await life.store.damage()));
    await this.#machine.drive(Promise.resolve(life.store[Symbol.asyncDispose]()), life);
  }

  async #quiet(life: Life): Promise<void> {
    await this.#machine.untilOpen(life, 1);
    if (!life.disk.running || life.failed) return;
    for (const model of this.#groups) {
      if (model.state === 'here') await this.#machine.drive(checkContent(life.store, model, this.#random), life);
    }
  }

  /** Restarts in which nothing is written leave no more files than there were. */
  async #doNothing(): Promise<void> {
    const machine = this.#machine;
    let files = Infinity;
    for (let restart = 0; restart < 3; restart++) {
      machine.crash(this.#someCrash());
      const life = await machine.begin(() => undefined, false);
      assert.ok(life !== undefined);
      await this.#check(life.store);
      life.over = true;
      const now = machine.volumes().length;
      // The first may write a tail again.
      assert.ok(restart < 2 || now <= files, `${files} files, then ${now}`);
      files = now;
      this.#points.reached('C19 restart after restart, nothing written');
    }
  }
}
