import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { codeOf, messageOf } from '@webdfs/base';
import { readTopologyFile } from './topology-file.ts';

const folder = await mkdtemp(join(tmpdir(), 'webdfs-topology-'));
after(() => rm(folder, { recursive: true }));
const path = join(folder, 'cluster.json');

function node(id: number, weight = 65_536): object {
  return { id, weight, labels: { rack: `rack-${id}` } };
}

async function readBack(value: unknown): ReturnType<typeof readTopologyFile> {
  await writeFile(path, typeof value === 'string' ? value : JSON.stringify(value));
  return await readTopologyFile(path);
}

test('a topology file needs its sub-clusters only; what it says besides counts', async () => {
  const subclusters = [{ id: 1, nodes: [node(1), node(2), node(3)] }];
  assert.deepEqual(await readBack({ subclusters }), { seed: 1, cluster: { copies: 3, subclusters } });
  const given = {
    subclusters,
    seed: 9,
    copies: 2,
    domain: 'rack',
    algorithm: 'ring',
    version: 1,
    pins: [{ group: -1 }],
  };
  assert.deepEqual(await readBack(given), { seed: 9, cluster: { copies: 2, domain: 'rack', subclusters } });
});

test('what is wrong with a topology file is told with its name and the entry', async () => {
  const wrong: [value: unknown, what: RegExp][] = [
    ['{', /cluster\.json.*JSON/],
    [[], /cluster\.json.*subclusters/],
    [{ subclusters: [{ id: 1, nodes: [{ ...node(1), weight: 'x' }] }] }, /subclusters\[0\]\.nodes\[0\]\.weight/],
    [{ subclusters: [{ id: 1, nodes: [node(1, -1), node(2), node(3)] }] }, /node 1 has weight -1/],
    [{ subclusters: [{ id: 1, nodes: [node(1), node(1), node(3)] }] }, /node 1 is listed twice/],
    [{ subclusters: [{ id: 1, nodes: [node(1), node(2)] }] }, /3 copies need/],
  ];
  for (const [value, what] of wrong) {
    await assert.rejects(readBack(value), (error) => {
      assert.equal(codeOf(error), 'INVALID');
      assert.match(messageOf(error), what);
      return true;
    });
  }
  await assert.rejects(readTopologyFile(join(folder, 'none.json')), { code: 'INVALID' });
});
