import { codeOf, EMPTY, equalBytes, fromUtf8, type Log, messageOf, utf8 } from '@webdfs/base';
import type { Core } from './core.ts';
import { KIND } from './entry.ts';
import { ROW, unpackPiece, unpackPieceKey } from './index-rows.ts';
import { Logged } from './logged.ts';
import type { FoundEntry } from './reader.ts';
import { rowPages } from './row-pages.ts';
import type { Row, RowChange, RowIndex } from './row-index.ts';
import {
  INDEX_FORMAT,
  metaRowKey,
  unpackDamage,
  unpackDamageKey,
  unpackGroup,
  unpackGroupKey,
  unpackPendingKey,
  unpackPlace,
  unpackVolume,
  unpackVolumeKey,
  type VolumeValue,
} from './state-rows.ts';
import type { StagedBlock } from './staged-table.ts';

/** Whether an index is whole and this store's: else it is rebuilt. */
export function isUsable(index: RowIndex, storeId: string): boolean {
  const format = index.get(metaRowKey('format'));
  const owner = index.get(metaRowKey('storeId'));
  if (format === undefined || owner === undefined || index.get(metaRowKey('ready')) === undefined) return false;
  return fromUtf8(format) === String(INDEX_FORMAT) && equalBytes(owner, utf8(storeId));
}

/** The rows that make an index usable: they go in with the last batch of a recovery. */
export function readyRows(storeId: string): RowChange[] {
  return [
    { key: metaRowKey('format'), value: utf8(String(INDEX_FORMAT)) },
    { key: metaRowKey('storeId'), value: utf8(storeId) },
    { key: metaRowKey('ready'), value: utf8('1') },
  ];
}

/** The `v` rows: what recovery begins from. */
export async function loadVolumes(index: RowIndex): Promise<Map<number, VolumeValue>> {
  const known = new Map<number, VolumeValue>();
  await eachRow(index, ROW.VOLUME, (row) => void known.set(unpackVolumeKey(row.key), unpackVolume(row.value)));
  return known;
}

/** Everything that lives in memory while the store is open, except pending entries, whose bytes are in the volumes. */
export async function loadState(core: Core): Promise<void> {
  const { groups, damage, staged, volumes, clock } = core.tables;
  const { index } = core;
  const highest = index.get(metaRowKey('highest'));
  if (highest !== undefined) volumes.reserve(Number(fromUtf8(highest)));
  await eachRow(index, ROW.GROUP, (row) => groups.need(unpackGroupKey(row.key)).restore(unpackGroup(row.value)));
  await eachRow(index, ROW.DAMAGE, (row) => {
    const { volume, place } = unpackDamageKey(row.key);
    damage.restore(volume, place, unpackDamage(row.value));
  });
  await eachRow(index, ROW.REQUESTS, (row) => core.requests.restore(row.key, row.value));
  await eachRow(index, ROW.PIECE, (row) => {
    const key = unpackPieceKey(row.key.subarray(1));
    if (key === undefined) return;
    const { policy, group, ...piece } = unpackPiece(row.value);
    let block = staged.get(key.id, key.generation);
    if (block === undefined) {
      block = stagedOf({ policy, group }, key, clock.now());
      staged.add(block);
    }
    block.pieces.push({ ...piece, offset: key.offset });
  });
}

function stagedOf(
  group: StagedBlock['group'],
  key: { id: Uint8Array; generation: number },
  sinceMs: number,
): StagedBlock {
  return { group, id: key.id, generation: key.generation, pieces: [], whole: undefined, named: 0, sinceMs };
}

/** Pending entries by their `q` rows, read back from the volumes. One that cannot be read is damage: its group lacks it. */
export async function loadPending(core: Core, log: Log): Promise<void> {
  const rows: Row[] = [];
  await eachRow(core.index, ROW.PENDING, (row) => void rows.push(row));
  for (const row of rows) {
    const key = unpackPendingKey(row.key);
    const place = unpackPlace(row.value);
    try {
      const read = await core.reader.readEntry(place, { sequence: key.sequence });
      const found = 'entry' in read ? read : read.rest;
      if ('mismatch' in read) {
        const { volume, place: at, entryBytes: length } = place;
        const headLost = found?.head.kind !== KIND.RECORD;
        core.tables.damage.report({ volume, place: at, length, what: read.mismatch.what, headLost, group: key });
      }
      if (found !== undefined) {
        // without its body it still holds its place: those behind it were acknowledged
        const entry = pendingOf(found, place);
        entry.damaged = 'mismatch' in read;
        core.tables.groups.need(key).addPending(entry);
        core.requests.met(entry);
        continue;
      }
    } catch (error) {
      if (codeOf(error) !== 'NOT_FOUND') throw error;
      log.error('pending entry lost', { volume: place.volume, place: place.place, error: messageOf(error) });
    }
    core.tables.overlay.put(row.key, undefined);
  }
}

/** As it was when it became durable. */
function pendingOf({ head, entry, storedKey }: FoundEntry, place: { volume: number; place: number }): Logged {
  const keepsBody = head.kind === KIND.BLOCK || head.kind === KIND.GROUP_ENTRY;
  const body = keepsBody ? entry.body : EMPTY;
  const { meta, sums } = entry;
  const logged = new Logged(head, { key: storedKey, meta, body, sums, bodyBytes: head.bodyBytes });
  logged.volume = place.volume;
  logged.place = place.place;
  logged.durable = true;
  logged.queued = true;
  logged.settled = true;
  return logged;
}

async function eachRow(index: RowIndex, letter: number, visit: (row: Row) => void): Promise<void> {
  for await (const rows of rowPages(index, Uint8Array.of(letter))) for (const row of rows) visit(row);
}
