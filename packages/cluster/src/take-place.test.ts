import assert from 'node:assert/strict';
import { test } from 'node:test';
import { asNodeId, ManualClock, type NodeId, SeededRandom, silentLog } from '@webdfs/base';
import { announceFounding, type Founding } from './founding.ts';
import { diskKey, FOUNDING_KEY, JOIN_PREFIX, nodeKey } from './keys.ts';
import { MapSnapshot } from './map-view.ts';
import { MemoryMapStore } from './memory-map-store.ts';
import { type PlaceOptions, takePlace } from './take-place.ts';

const FOUNDING: Founding = { nodes: 3, copies: 3, algorithm: 'wrd', groupBits: 4, secret: 'right' };

/** A store in which a cluster is announced, and folders that ask for a place in it. */
class Asking {
  readonly clock = new ManualClock();
  readonly store = new MemoryMapStore(this.clock);
  readonly stops = new Map<string, AbortController>();

  static async of(founding: Partial<Founding> = {}): Promise<Asking> {
    const asking = new Asking();
    await announceFounding(asking.store, { ...FOUNDING, ...founding });
    return asking;
  }

  ask(storeId: string, options: Partial<PlaceOptions> = {}): Promise<NodeId> {
    const stop = new AbortController();
    this.stops.set(storeId, stop);
    const place = takePlace({
      store: this.store,
      name: 'home',
      storeId,
      joining: { labels: { machine: `m-${storeId}`, rack: `r-${storeId}` }, weight: 1 },
      secret: 'right',
      clock: this.clock,
      random: new SeededRandom(1),
      log: silentLog,
      signal: stop.signal,
      ...options,
    });
    place.catch(() => undefined);
    return place;
  }

  async pass(ms: number): Promise<void> {
    for (let left = ms; left > 0; left -= 100) {
      this.clock.advance(100);
      for (let i = 0; i < 20; i++) await new Promise((resolve) => setImmediate(resolve));
    }
  }

  async keys(prefix: string): Promise<string[]> {
    return (await this.store.read()).entries.map(({ key }) => key).filter((key) => key.startsWith(prefix));
  }

  async map(): Promise<MapSnapshot> {
    return MapSnapshot.of(await this.store.read());
  }
}

test('a cluster is made when enough have announced themselves, of what they announced', async () => {
  const asking = await Asking.of();
  const places = [asking.ask('c'), asking.ask('a')];
  await asking.pass(2_000);
  assert.ok(!(await asking.map()).founded);
  places.push(asking.ask('b'));
  await asking.pass(2_000);
  assert.deepEqual(await Promise.all(places), [3, 1, 2]);
  const map = await asking.map();
  assert.equal(map.map.settled.domain, 'rack');
  assert.equal(map.disk(asNodeId(2))?.id, 'b');
  assert.deepEqual(await asking.keys(JOIN_PREFIX), []);
  assert.deepEqual(await asking.keys(FOUNDING_KEY), []);
});

test('one more than enough waits, until it is added', async () => {
  const asking = await Asking.of();
  const places = ['a', 'b', 'c'].map((id) => asking.ask(id));
  await asking.pass(2_000);
  await Promise.all(places);
  const late = asking.ask('d');
  await asking.pass(2_000);
  assert.deepEqual(await asking.keys(JOIN_PREFIX), ['join/d']);
  // whoever adds nodes gives the folder a place
  const { map } = await asking.map();
  const [subcluster] = map.settled.subclusters;
  const grown = {
    ...map.settled,
    subclusters: [
      {
        ...subcluster!,
        nodes: [...subcluster!.nodes, { id: 4, weight: 65_536, labels: { machine: 'm-d', rack: 'r-d' } }],
      },
    ],
  };
  await asking.store.transact({
    compare: [],
    write: [
      { type: 'put', key: 'map', value: JSON.stringify({ ...map, target: grown }) },
      { type: 'put', key: nodeKey(asNodeId(4)), value: '{"address":"","labels":{},"life":0}' },
      { type: 'put', key: diskKey(asNodeId(4)), value: '{"id":"d","founding":false}' },
    ],
  });
  await asking.pass(1_000);
  assert.equal(await late, 4);
  assert.deepEqual(await asking.keys(JOIN_PREFIX), []);
});

test('who stops asking is not waited for', async () => {
  const asking = await Asking.of();
  const first = asking.ask('a');
  void asking.ask('b');
  await asking.pass(1_000);
  asking.stops.get('a')!.abort();
  await assert.rejects(first, { code: 'CANCELLED' });
  await asking.pass(1_000);
  assert.deepEqual(await asking.keys(JOIN_PREFIX), ['join/b']);
});

test('a folder keeps its place, a new one takes a place by its number only', async () => {
  const asking = await Asking.of();
  const places = ['a', 'b', 'c'].map((id) => asking.ask(id));
  await asking.pass(2_000);
  await Promise.all(places);
  assert.equal(await asking.ask('b'), 2);
  assert.equal(await asking.ask('new', { node: asNodeId(2) }), 2);
  await assert.rejects(asking.ask('b', { node: asNodeId(3) }), { code: 'BAD_CONFIG' });
  await assert.rejects(asking.ask('new', { node: asNodeId(9) }), { code: 'BAD_CONFIG' });
});

test('another secret is refused, while the cluster is made and after', async () => {
  const asking = await Asking.of();
  await assert.rejects(asking.ask('x', { secret: 'wrong' }), { code: 'ACCESS_DENIED' });
  const places = ['a', 'b', 'c'].map((id) => asking.ask(id));
  await asking.pass(2_000);
  await Promise.all(places);
  await assert.rejects(asking.ask('x', { secret: 'wrong', node: asNodeId(2) }), { code: 'ACCESS_DENIED' });
});

test('where nothing was announced nobody waits; what is made is not announced again', async () => {
  const asking = new Asking();
  await assert.rejects(asking.ask('a'), { code: 'NOT_FOUND' });
  await assert.rejects(announceFounding(asking.store, { ...FOUNDING, copies: 4 }), { code: 'BAD_CONFIG' });
  await announceFounding(asking.store, { ...FOUNDING, nodes: 1, copies: 1 });
  const place = asking.ask('a');
  await asking.pass(2_000);
  assert.equal(await place, 1);
  await assert.rejects(announceFounding(asking.store, FOUNDING), { code: 'ALREADY_EXISTS' });
});

test('copies are kept apart by the widest label that has values enough', async () => {
  const asking = await Asking.of({ copies: 2 });
  const zones = { a: 'east', b: 'east', c: 'west' };
  const places = Object.entries(zones).map(([id, zone]) =>
    asking.ask(id, { joining: { labels: { machine: id, zone }, weight: 2 } }),
  );
  await asking.pass(2_000);
  await Promise.all(places);
  const { settled } = (await asking.map()).map;
  assert.equal(settled.domain, 'zone');
  assert.deepEqual(
    settled.subclusters[0]?.nodes.map(({ weight }) => weight),
    [131_072, 131_072, 131_072],
  );
});
