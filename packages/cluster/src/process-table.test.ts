import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { test } from 'node:test';
import { NodeDisk } from '@webdfs/base';
import { SimulatedDisk } from '@webdfs/base/testing';
import { SystemProcesses } from './process-table.ts';

test('this process is not gone, and one with its id but another start is', async () => {
  const processes = new SystemProcesses(new NodeDisk());
  const own = await processes.own();
  assert.equal(own.pid, process.pid);
  assert.equal(await processes.gone(own), false);
  assert.equal(await processes.gone({ ...own, start: `${own.start}1` }), own.start !== '');
  assert.equal(await processes.gone({ ...own, boot: 'another' }), own.boot !== '');
});

test('with several machines nothing is known of a process of another boot: it may run elsewhere', async () => {
  const processes = new SystemProcesses(new NodeDisk(), { alone: false, exists: () => false });
  const own = await processes.own();
  assert.equal(await processes.gone({ ...own, boot: 'another' }), false);
  assert.equal(await processes.gone({ ...own, boot: '' }), false);
  assert.equal(await processes.gone(own), own.boot !== '');
});

test('a process is gone once it has ended', async () => {
  const processes = new SystemProcesses(new NodeDisk());
  const child = spawn('sleep', ['60']);
  await once(child, 'spawn');
  const mark = { pid: child.pid!, start: '', boot: '' };
  assert.equal(await processes.gone(mark), false);
  child.kill('SIGKILL');
  await once(child, 'exit');
  assert.equal(await processes.gone(mark), true);
});

async function withStat(text: string): Promise<SystemProcesses> {
  const disk = new SimulatedDisk({ seed: 1 });
  await disk.makeFolder('/proc/77');
  const file = await disk.create('/proc/77/stat');
  await file.writev([new TextEncoder().encode(text)], 0);
  return new SystemProcesses(disk, { exists: () => true });
}

const fields = (state: string, start: string): string =>
  `77 (a) b (c) ${state} 1 77 77 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 ${start} 9 9`;

test('a name with brackets and blanks does not confuse', async () => {
  const processes = await withStat(fields('S', '4711'));
  assert.equal(await processes.gone({ pid: 77, start: '4711', boot: '' }), false);
  assert.equal(await processes.gone({ pid: 77, start: '4712', boot: '' }), true);
});

test('a zombie is gone', async () => {
  const processes = await withStat(fields('Z', '4711'));
  assert.equal(await processes.gone({ pid: 77, start: '4711', boot: '' }), true);
});

test('without /proc a process with the id is thought to be the one', async () => {
  const alive = new SystemProcesses(new SimulatedDisk({ seed: 1 }), { exists: () => true });
  assert.equal(await alive.gone({ pid: 77, start: '4711', boot: 'b' }), false);
  const none = new SystemProcesses(new SimulatedDisk({ seed: 1 }), { exists: () => false });
  assert.equal(await none.gone({ pid: 77, start: '', boot: '' }), true);
});
