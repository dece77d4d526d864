import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import { test, type TestContext } from 'node:test';
import { serveLocally } from '@webdfs/base/testing';
import type { StatusReport, TopologyReport } from '@webdfs/webdfs';
import { EXIT } from '../command.ts';
import { runProgram } from '../program.ts';
import { plan } from './plan.ts';

async function run(
  words: readonly string[],
  environment: Record<string, string> = {},
): Promise<{ code: number; output: string; errors: string }> {
  const [output, errors] = [new PassThrough(), new PassThrough()];
  const terminal = { input: new PassThrough(), output, errors, environment, signal: new AbortController().signal };
  const shown = [text(output), text(errors)] as const;
  const code = await runProgram([plan], ['plan', ...words], terminal, '1');
  output.end();
  errors.end();
  return { code, output: await shown[0], errors: await shown[1] };
}

/** A topology file that is gone after the test. */
async function fileOf(t: TestContext, content: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'webdfs-plan-'));
  t.after(() => rm(folder, { recursive: true }));
  const path = join(folder, 'racks.yaml');
  await writeFile(path, content);
  return path;
}

const FIVE = 'groups: 256\nsubclusters: [{nodes: 1-5}]\n';

test('the JSON has the whole plan, and changes are made in their order', async (t) => {
  const path = await fileOf(t, `stored: 256 MB\n${FIVE}`);
  const { code, output } = await run(['--topology', path, '--json', 'add=2,rack=new', 'drain=rack:new', 'drain=1']);
  assert.equal(code, EXIT.OK);
  const found = JSON.parse(output);
  assert.equal(found.of, path);
  assert.equal(found.groups, 256);
  assert.deepEqual(
    found.nodes.map(({ node, weight }: { node: number; weight: { after: number } }) => [node, weight.after / 65_536]),
    [
      [1, 0],
      [2, 1],
      [3, 1],
      [4, 1],
      [5, 1],
      [6, 0],
      [7, 0],
    ],
  );
  const flows: { from: number; to: number; groups: number; bytes: number }[] = found.movement.flows;
  assert.ok(flows.every(({ from, groups, bytes }) => from === 1 && bytes === groups * 1e6));
  assert.equal(
    flows.reduce((sum, { groups }) => sum + groups, 0),
    found.movement.copies,
  );
});

test('without a change the plan says how things stand', async (t) => {
  const { code, output } = await run(['--topology', await fileOf(t, FIVE)]);
  assert.equal(code, EXIT.OK);
  assert.match(output, /^Nothing has to be copied\.$/m);
});

test('a plan leads from one file to another', async (t) => {
  const [before, after] = [
    await fileOf(t, FIVE),
    await fileOf(t, 'groups: 256\nsubclusters: [{nodes: 1-5}, {nodes: 9-10}]\n'),
  ];
  const { output } = await run(['--topology', before, '--to', after, '--json']);
  assert.ok(JSON.parse(output).movement.flows.every(({ to }: { to: number }) => to >= 9));
  const other = await fileOf(t, 'groups: 512\nsubclusters: [{nodes: 1-5}]\n');
  const { code, errors } = await run(['--topology', before, '--to', other]);
  assert.equal(code, EXIT.USAGE);
  assert.match(errors, /has 512 groups, .* has 256/);
});

test('too few nodes, or too little room, end with 1; what cannot be planned at all with 2', async (t) => {
  const path = await fileOf(t, `stored: 1 TB\n${FIVE}`);
  assert.equal((await run(['--topology', path, 'drain=1-3'])).code, EXIT.FAILED);
  const small = await fileOf(t, 'stored: 1 TB\ngroups: 256\nsubclusters: [{nodes: 1-5, capacity: 700 GB}]\n');
  assert.equal((await run(['--topology', small])).code, EXIT.OK);
  const { code, output } = await run(['--topology', small, 'drain=1']);
  assert.equal(code, EXIT.FAILED);
  assert.match(output, /node 2 would hold 7\d\d\.\d\d GB and has room for 700\.00 GB/);
  const wrong: [string[], RegExp][] = [
    [['drain=9'], /drain: there is no node 9/],
    [['drain=1-5'], /after the change no node has weight/],
    [['algorithm=best'], /unknown placement algorithm best/],
    [['algorithm=jump', 'weight=1,to=2'], /jump knows no weights/],
    [['copies=33'], /copies is "33"/],
    [['grow=2'], /grow=2 is no change/],
    [['copies=2', '--to', path], /not both/],
  ];
  for (const [words, message] of wrong) {
    const { code, errors } = await run(['--topology', path, ...words]);
    assert.equal(code, EXIT.USAGE, words.join(' '));
    assert.match(errors, message);
  }
  assert.equal((await run(['--topology', join(tmpdir(), 'no-such-file')])).code, EXIT.NOT_FOUND);
});

/** Answers as a node of a cluster does. */
async function serve(
  t: TestContext,
  topology: TopologyReport,
  status: Partial<StatusReport>,
): Promise<Record<string, string>> {
  const server = await serveLocally((request, response) => {
    const report = { '/-/topology': topology, '/-/status': status }[new URL(request.url!, 'http://x').pathname];
    response.writeHead(report === undefined ? 404 : 200).end(JSON.stringify(report));
  });
  t.after(() => server[Symbol.asyncDispose]());
  return {
    WEBDFS_ENDPOINT: `http://${server.host}`,
    WEBDFS_ACCESS_KEY_ID: 'access-key',
    WEBDFS_SECRET_ACCESS_KEY: 'secret-key',
  };
}

test('of a running cluster: bytes and room are those of its nodes, and what is under way is said', async (t) => {
  const nodes = [1, 2, 3, 4].map((id) => ({ id, weight: 65_536, labels: {} }));
  const settled = { algorithm: 'wrd', version: 1, seed: 1, copies: 3, subclusters: [{ id: 1, nodes }] };
  const groupBytes = Array.from({ length: 256 }, (_, group) => (group % 2 === 0 ? 2e7 : 6e7));
  const report = { name: 'c', epoch: 7, groupBits: 8, copies: 3, settled, target: settled, out: [4], groupBytes };
  const up = [1, 2, 3].map((id) => ({ id, state: 'up' as const, bytes: 7.5e9, freeBytes: 1e9 }));
  const status = { nodes: [...up, { id: 4, state: 'down' as const }] };
  const environment = await serve(t, report as unknown as TopologyReport, status);
  const { code, output, errors } = await run(['drain=4', '--json'], environment);
  assert.equal(errors, '');
  const found = JSON.parse(output);
  assert.equal(found.storedBytes, 256 * 4e7, 'what the groups hold, once');
  assert.equal(found.of, 'cluster c, epoch 7');
  assert.deepEqual(
    found.warnings.map(({ code }: { code: string }) => code),
    ['change-under-way', 'nodes-out', 'no-room', 'no-room', 'no-room'],
  );
  assert.equal(code, EXIT.FAILED);
});
