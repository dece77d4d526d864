import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { test } from 'node:test';
import { type Clock, systemClock } from '@webdfs/base';
import { serveLocally } from '@webdfs/base/testing';
import { S3Client } from './s3-client.ts';
import { type VerifyFindings, verifyObjects } from './verify-objects.ts';

/** Whatever has to be waited for has passed. */
const HASTY: Clock = { ...systemClock, after: (_ms, action) => systemClock.after(0, action) };

interface Stored {
  /** What is answered, and what it should be. */
  body: Buffer;
  readonly etag: string;
  readonly parts?: readonly Buffer[];
  copies?: unknown[];
  /** Called at each GET; true: it has answered itself. */
  onGet?: (answer: ServerResponse) => boolean;
}

function md5(bytes: Uint8Array): string {
  return createHash('md5').update(bytes).digest('hex');
}

function anObject(text: string, more: Partial<Stored> = {}): Stored {
  const body = Buffer.from(text);
  return { body, etag: md5(body), ...more };
}

const COPIES = [1, 2, 3].map((node) => ({ node, role: 'member', present: true, checksum: 'good', version: 4 }));

/** A store that answers what a script says. */
class ScriptedStore {
  readonly objects = new Map<string, Stored>();

  async verified(): Promise<VerifyFindings> {
    await using server = await serveLocally((request, answer) => this.#serve(request, answer));
    const credentials = { accessKeyId: 'id', secretAccessKey: 'secret' };
    using client = new S3Client({ endpoint: `http://${server.host}`, credentials, clock: systemClock });
    return await verifyObjects({ client, clock: HASTY, atOnce: 2, signal: new AbortController().signal });
  }

  #serve(request: IncomingMessage, answer: ServerResponse): void {
    const url = new URL(request.url!, 'http://store');
    if (url.pathname === '/') answer.end('<Buckets><Bucket><Name>bucket</Name></Bucket></Buckets>');
    else if (url.pathname === '/-/where') this.#where(url, answer);
    else if (url.pathname.replace(/\/$/, '') === '/bucket') this.#list(url, answer);
    else this.#get(url, request, answer);
  }

  #list(url: URL, answer: ServerResponse): void {
    const prefix = url.searchParams.get('prefix') ?? '';
    const rows = [...this.objects]
      .filter(([key]) => key.startsWith(prefix))
      .map(([key, { body, parts, etag }]) => {
        const size = parts === undefined ? body.length : Buffer.concat(parts).length;
        return `<Contents><Key>${key}</Key><Size>${size}</Size><ETag>"${etag}"</ETag></Contents>`;
      });
    answer.end(`<ListBucketResult>${rows.join('')}</ListBucketResult>`);
  }

  #where(url: URL, answer: ServerResponse): void {
    const stored = this.objects.get(url.searchParams.get('key') ?? '');
    const copies = stored?.copies ?? COPIES;
    const places = [{ what: 'record', group: 1, members: [1, 2, 3], primary: 1, copies }];
    answer.end(JSON.stringify({ etag: stored?.etag, places, blocks: 0, firstBlock: 0, sound: true }));
  }

  #get(url: URL, request: IncomingMessage, answer: ServerResponse): void {
    const stored = this.objects.get(url.pathname.slice('/bucket/'.length));
    if (stored === undefined) {
      answer.writeHead(404).end('<Error><Code>NoSuchKey</Code><Message>no such key</Message></Error>');
      return;
    }
    if (stored.onGet?.(answer) === true) return;
    if (request.headers['if-match'] !== `"${stored.etag}"`) {
      answer.writeHead(412).end('<Error><Code>PreconditionFailed</Code></Error>');
      return;
    }
    const part = url.searchParams.get('partNumber');
    answer.end(part === null ? stored.body : stored.parts![Number(part) - 1]);
  }
}

test('objects whose bytes and copies are right are proved, in parts or whole', async () => {
  const store = new ScriptedStore();
  store.objects.set('one', anObject('hello'));
  const parts = [Buffer.from('first'), Buffer.from('second')];
  const etag = `${md5(Buffer.concat(parts.map((part) => Buffer.from(md5(part), 'hex'))))}-2`;
  store.objects.set('parts', { body: Buffer.concat(parts), parts, etag });
  const { objects, bytes, copies, bad, notCounted, problems } = await store.verified();
  assert.deepEqual(
    { objects, bytes, copies, bad, notCounted, problems },
    {
      objects: 2,
      bytes: 16,
      copies: 6,
      bad: 0,
      notCounted: 0,
      problems: [],
    },
  );
});

test('bytes that do not fit the ETag, and copies that are missing or damaged, are bad', async () => {
  const store = new ScriptedStore();
  store.objects.set('wrong', anObject('hello', { body: Buffer.from('hellO') }));
  const [good, ...others] = COPIES;
  store.objects.set(
    'missing',
    anObject('a', { copies: [good, { ...others[0], present: false }, { ...others[1], checksum: 'bad' }] }),
  );
  const { bad, notCounted, problems } = await store.verified();
  assert.deepEqual([bad, notCounted], [3, 0]);
  assert.deepEqual(problems.map(({ what }) => what.replace(/ETag .*/, 'ETag')).toSorted(), [
    'its bytes do not fit its ETag',
    'record at node 2: missing',
    'record at node 3: damaged',
  ]);
});

test('an object that is listed and not there is bad, one that was deleted meanwhile is not', async () => {
  const store = new ScriptedStore();
  const refuse = (answer: ServerResponse): boolean => {
    answer.writeHead(404).end('<Error><Code>NoSuchKey</Code><Message>no such key</Message></Error>');
    return true;
  };
  store.objects.set('lost', anObject('a', { onGet: refuse }));
  const onGet = (answer: ServerResponse): boolean => {
    store.objects.delete('deleted');
    return refuse(answer);
  };
  store.objects.set('deleted', anObject('b', { onGet }));
  const { bad, deleted, notCounted, problems } = await store.verified();
  assert.deepEqual([bad, deleted, notCounted], [1, 1, 0]);
  assert.equal(problems[0]!.key, 'lost');
});

test('an object that is replaced meanwhile is proved in its new version', async () => {
  const store = new ScriptedStore();
  const onGet = (): boolean => {
    store.objects.set('key', anObject('newer'));
    return false;
  };
  store.objects.set('key', anObject('older', { onGet }));
  // the old answer is of the old version; the node's report is of the new one
  const { objects, bad, notCounted } = await store.verified();
  assert.deepEqual([objects, bad, notCounted], [1, 0, 0]);
});

test('an answer that breaks off, or a node that cannot be asked, is not counted', async () => {
  const store = new ScriptedStore();
  const onGet = (answer: ServerResponse): boolean => {
    answer.writeHead(200, { 'content-length': '100' });
    answer.write('some');
    setImmediate(() => answer.destroy());
    return true;
  };
  store.objects.set('cut', anObject('a', { onGet }));
  store.objects.set('away', anObject('b', { copies: [{ ...COPIES[0], problem: 'node 1 does not answer' }] }));
  const { objects, bad, notCounted } = await store.verified();
  assert.deepEqual([objects, bad, notCounted], [1, 0, 2]);
});
