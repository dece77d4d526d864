import { fromUtf8, utf8 } from '@webdfs/base';
import type { Answer } from '../../http/answer.ts';
import { isoDate } from '../../http/dates.ts';
import { Refusal } from '../../refusal.ts';
import { type Call, numberIn, xml } from '../call.ts';
import { leaf, node, root } from '../xml-write.ts';

const MOST = 10_000;

/** ListBuckets, with prefix and pages. */
export async function listBuckets(call: Call): Promise<Answer> {
  const { query } = call.exchange;
  const prefix = query.get('prefix') ?? '';
  const limit = numberIn(call, 'max-buckets', { least: 1, most: MOST }) ?? MOST;
  const token = query.get('continuation-token');
  const after = token === undefined ? '' : nameIn(token);
  const all = await call.store.listBuckets();
  const names = all
    .filter((bucket) => bucket.name.startsWith(prefix) && bucket.name > after)
    .sort((a, b) => (a.name < b.name ? -1 : 1));
  const page = names.slice(0, limit);
  const owner = call.accessKeyId ?? '';
  return xml(
    root(
      'ListAllMyBucketsResult',
      node('Owner', leaf('ID', owner), leaf('DisplayName', owner)),
      node(
        'Buckets',
        ...page.map((bucket) =>
          node(
            'Bucket',
            leaf('Name', bucket.name),
            leaf('CreationDate', isoDate(bucket.createdMs)),
            leaf('BucketRegion', bucket.region),
          ),
        ),
      ),
      leaf('Prefix', prefix === '' ? undefined : prefix),
      leaf('ContinuationToken', names.length > page.length ? tokenOf(page.at(-1)?.name ?? '') : undefined),
    ),
  );
}

function tokenOf(name: string): string {
  return Buffer.from(utf8(name)).toString('base64url');
}

function nameIn(token: string): string {
  const bytes = Buffer.from(token, 'base64url');
  if (bytes.toString('base64url') !== token)
    throw new Refusal('InvalidArgument', 'The continuation token is not ours.');
  return fromUtf8(bytes);
}
