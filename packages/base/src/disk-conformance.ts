import assert from 'node:assert/strict';
import { test } from 'node:test';
import { concat, utf8 } from './bytes.ts';
import { type Disk, type DiskFile, PAGE_BYTES, readWhole, replaceWhole, writeFully } from './disk.ts';
import { codeOf } from './errors.ts';

/** A disk under test, and an empty folder on it. */
export interface DiskUnderTest extends AsyncDisposable {
  readonly disk: Disk;
  readonly folder: string;
}

async function refused(code: string, work: Promise<unknown>): Promise<void> {
  await assert.rejects(work, (error) => codeOf(error) === code);
}

function testFiles(house: string, open: () => Promise<DiskUnderTest>): void {
  test(`${house}: what was written at an offset is read back, across holes and overlaps`, async () => {
    await using under = await open();
    const file = await under.disk.create(`${under.folder}/a`);
    await writeFully(file, [utf8('hello'), utf8(' world')], 0);
    assert.equal(file.writevSync([utf8('W')], 6), 1);
    await writeFully(file, [utf8('!')], 20);
    const bytes = new Uint8Array(30);
    assert.equal(await file.read(bytes, 0), 21);
    assert.deepEqual(bytes.subarray(0, 21), concat([utf8('hello World'), new Uint8Array(9), utf8('!')]));
    assert.equal(file.readSync(bytes, 20), 1);
    assert.equal(file.readSync(bytes, 21), 0);
    assert.equal(await file.size(), 21);
    await file.datasync();
    await file.sync();
    await file.close();
  });

  test(`${house}: an open file is read to its end after it was unlinked`, async () => {
    await using under = await open();
    const path = `${under.folder}/a`;
    const file = await under.disk.create(path);
    await writeFully(file, [utf8('still here')], 0);
    await under.disk.unlink(path);
    assert.equal(await under.disk.exists(path), false);
    const bytes = new Uint8Array(10);
    assert.equal(await file.read(bytes, 0), 10);
    assert.deepEqual(bytes, utf8('still here'));
    await file.close();
  });

  test(`${house}: opening what is missing and creating what is there have their codes`, async () => {
    await using under = await open();
    const path = `${under.folder}/a`;
    await refused('NOT_FOUND', under.disk.open(path, 'read'));
    const file = await under.disk.create(path);
    await file.close();
    await refused('ALREADY_EXISTS', under.disk.create(path));
    await refused('NOT_FOUND', under.disk.create(`${under.folder}/none/a`));
    await under.disk.unlink(path);
    await under.disk.unlink(path);
    await refused('NOT_FOUND', under.disk.open(path, 'write'));
  });
}

/** Undefined where the file system has no direct writes, which is allowed. */
async function openDirect(disk: Disk, path: string): Promise<DiskFile | undefined> {
  try {
    return await disk.open(path, 'direct');
  } catch (error) {
    assert.equal(codeOf(error), 'UNSUPPORTED');
    return undefined;
  }
}

function testDirect(house: string, open: () => Promise<DiskUnderTest>): void {
  test(`${house}: direct writes and those through the cache are one file`, async (t) => {
    await using under = await open();
    const path = `${under.folder}/a`;
    const file = await under.disk.create(path);
    await writeFully(file, [new Uint8Array(100).fill(1)], PAGE_BYTES - 100);
    const pages = under.disk.pages(4 * PAGE_BYTES);
    assert.ok(pages.every((byte) => byte === 0));
    pages.fill(2);
    const direct = await openDirect(under.disk, path);
    if (direct === undefined) return t.skip('no direct writes here');
    const parts = [pages.subarray(2 * PAGE_BYTES), pages.subarray(0, PAGE_BYTES)];
    assert.equal(await direct.writev(parts, PAGE_BYTES), 3 * PAGE_BYTES);
    await direct.close();
    await writeFully(file, [utf8('tail')], 4 * PAGE_BYTES);
    await file.datasync();
    assert.equal(await file.size(), 4 * PAGE_BYTES + 4);
    const bytes = new Uint8Array(3 * PAGE_BYTES + 104);
    await file.read(bytes, PAGE_BYTES - 100);
    const expected = [new Uint8Array(100).fill(1), new Uint8Array(3 * PAGE_BYTES).fill(2), utf8('tail')];
    assert.deepEqual(bytes, concat(expected));
    await file.close();
  });
}

function testFolders(house: string, open: () => Promise<DiskUnderTest>): void {
  test(`${house}: folders list their names in order and go with all that is in them`, async () => {
    await using under = await open();
    const inner = `${under.folder}/x/y`;
    await under.disk.makeFolder(inner);
    await under.disk.makeFolder(inner);
    for (const name of ['b', 'a']) await (await under.disk.create(`${inner}/${name}`)).close();
    assert.deepEqual(await under.disk.list(inner), ['a', 'b']);
    assert.deepEqual(await under.disk.list(under.folder), ['x']);
    await under.disk.removeFolder(`${under.folder}/x`);
    await under.disk.removeFolder(`${under.folder}/x`);
    assert.deepEqual(await under.disk.list(inner), []);
    assert.deepEqual(await under.disk.list(under.folder), []);
  });

  test(`${house}: a rename replaces its target, of a missing source it is refused`, async () => {
    await using under = await open();
    const { disk, folder } = under;
    await replaceWhole(disk, folder, 'a', utf8('one'));
    await replaceWhole(disk, folder, 'a', utf8('two'));
    assert.deepEqual(await disk.list(folder), ['a']);
    await replaceWhole(disk, folder, 'b', utf8('three'));
    await disk.rename(`${folder}/b`, `${folder}/a`);
    await disk.syncFolder(folder);
    assert.deepEqual(await readWhole(disk, `${folder}/a`), utf8('three'));
    await refused('NOT_FOUND', disk.rename(`${folder}/b`, `${folder}/a`));
    const space = await disk.space(folder);
    assert.ok(space.free <= space.total);
  });
}

/** What every house of `Disk` promises while nothing goes wrong. */
export function testDisk(house: string, open: () => Promise<DiskUnderTest>): void {
  testFiles(house, open);
  testDirect(house, open);
  testFolders(house, open);
}
