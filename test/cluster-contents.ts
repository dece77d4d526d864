import assert from 'node:assert/strict';
import { codeOf, type GroupKey, type NodeId, SeededRandom, systemClock, toHex, utf8 } from '@webdfs/base';
import { ObjectLayer } from '@webdfs/client';
import { type InProcessCluster, POLICY } from './cluster-in-process.ts';

export const BUCKET = 'tested';
/** Small enough that an object of a few kilobytes has several blocks. */
export const BLOCK_BYTES = 1_024;
export const INLINE_BYTES = 256;
const MAX_TRIES = 20;

/** The objects of a cluster as a client sees them at one node, and what it was told of each. */
export class Client {
  readonly layer: ObjectLayer;
  /** By key: the bytes that were acknowledged; undefined: deleted. */
  readonly told = new Map<string, Uint8Array | undefined>();
  readonly #random: SeededRandom;

  constructor(cluster: InProcessCluster, at: number, seed: number) {
    this.#random = new SeededRandom(seed);
    this.layer = new ObjectLayer({
      groups: cluster.router(at),
      policy: POLICY,
      clock: systemClock,
      random: new SeededRandom(seed + 1),
      sizes: { blockBytes: BLOCK_BYTES, inlineBytes: INLINE_BYTES, maxPutBytes: 1_000_000, minPartBytes: 64 },
    });
  }

  async begin(): Promise<void> {
    await this.layer.createBucket(BUCKET, { owner: 'tester' });
  }

  /** Puts fresh bytes under a key. */
  async put(key: string, size: number): Promise<void> {
    const bytes = this.#random.bytes(size);
    for (let attempt = 1; ; attempt++) {
      try {
        await this.layer.put(BUCKET, utf8(key), bytes, { facts: { headers: {}, user: {} }, size });
        break;
      } catch (error) {
        // 503 at the door: the bytes of a block went with its primary, and every S3 client sends them again
        if (codeOf(error) !== 'UNAVAILABLE' || attempt === MAX_TRIES) throw error;
      }
    }
    this.told.set(key, bytes);
  }

  async remove(key: string): Promise<void> {
    await this.layer.remove(BUCKET, utf8(key));
    this.told.set(key, undefined);
  }

  /** Everything that was acknowledged is there, byte by byte, and nothing that was deleted. */
  async check(): Promise<void> {
    for (const [key, bytes] of this.told) {
      if (bytes === undefined) {
        await assert.rejects(this.layer.get(BUCKET, utf8(key)), { code: 'NOT_FOUND' }, key);
        continue;
      }
      const { body } = await this.layer.get(BUCKET, utf8(key));
      const parts: Uint8Array[] = [];
      if (body instanceof Uint8Array) parts.push(body);
      else {
        for await (const piece of body) {
          parts.push(Uint8Array.from(piece.bytes));
          piece.release();
        }
      }
      assert.equal(toHex(Buffer.concat(parts)), toHex(bytes), key);
    }
    const { objects } = await this.layer.list(BUCKET, { limit: 1_000 });
    const present = [...this.told].filter(([, bytes]) => bytes !== undefined).map(([key]) => key);
    assert.deepEqual(
      objects.map(({ key }) => new TextDecoder().decode(key)),
      present.toSorted(),
    );
  }
}

/** As `assertHoldsAll`, for the groups of which the node is a member. */
export async function assertMembersHoldAll(cluster: InProcessCluster, id: NodeId): Promise<void> {
  const { view } = cluster.node(id).map;
  await assertHoldsAll(
    cluster,
    id,
    [...cluster.groups()].filter((key) => view.group(key).inSync.includes(id)),
  );
}

/** Waits until a node holds of every group what the primary holds, and proves it: every record and block is read there. */
export async function assertHoldsAll(
  cluster: InProcessCluster,
  id: NodeId,
  groups: Iterable<GroupKey> = cluster.groups(),
): Promise<void> {
  const { store, map } = cluster.node(id);
  for (const key of groups) {
    await cluster.until(`node ${id} holds group ${key.group}`, () => {
      const { primary } = map.view.group(key);
      if (primary === undefined) return false;
      const theirs = cluster.node(primary).store.log(key);
      const ours = store.log(key);
      return theirs.commit === ours.commit && theirs.digest === ours.digest && theirs.objects === ours.objects;
    });
    const { rows } = await store.walkRecords(key, undefined, 10_000);
    for (const row of rows) {
      const record = row.tombstone ? undefined : store.find(row.key);
      assert.equal(record === undefined, row.tombstone);
      if (record !== undefined) await store.read(record);
    }
    const blocks = await store.walkBlocks(key, undefined, 10_000);
    assert.equal(blocks.rows.length, store.log(key).blocks);
    for (const block of blocks.rows) await store.readBlock(block, 0, new Uint8Array(block.size));
  }
}
