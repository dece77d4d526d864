import { type Revision, WebdfsError } from '@webdfs/base';
import type { Change } from '../map-store.ts';
import { bytesIn, entryOf, type Fields, fieldsIn, listIn, numberIn, reasonIn } from './answers.ts';
import { NEWEST_KEY } from './requests.ts';

/**
 * The changes that one answer to a watch tells of, a revision each. The key of the newest revision is left out; a revision
 * that touched nothing else has no changes.
 *
 * @throws COMPACTED, UNAVAILABLE if etcd ended the watch
 */
export function changesOf(answer: Fields, prefix: string): readonly Change[] {
  const result = fieldsIn(answer, 'result');
  if (result['canceled'] === true) {
    const compacted = numberIn(result, 'compact_revision');
    if (compacted > 0) throw new WebdfsError('COMPACTED', `etcd: changes before revision ${compacted} are gone`);
    throw new WebdfsError('UNAVAILABLE', `etcd ended the watch: ${reasonIn(result, 'cancel_reason')}`);
  }
  const byRevision = new Map<Revision, Change['changes'][number][]>();
  for (const event of listIn(result, 'events')) {
    const kv = fieldsIn(event, 'kv');
    const revision = numberIn(kv, 'mod_revision');
    const changes = byRevision.get(revision) ?? [];
    byRevision.set(revision, changes);
    const key = bytesIn(kv, 'key').slice(prefix.length);
    if (key !== NEWEST_KEY) changes.push({ key, entry: event['type'] === 'DELETE' ? undefined : entryOf(kv, prefix) });
  }
  return [...byRevision].map(([revision, changes]) => ({ revision, changes }));
}
