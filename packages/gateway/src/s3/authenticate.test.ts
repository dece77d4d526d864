import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { seedOf } from '@webdfs/base/testing';
import { parseAmzDate } from '../http/dates.ts';
import { Query } from '../http/query.ts';
import { addressOf, parseTarget } from '../http/target.ts';
import { KeyRing } from '../keys.ts';
import { Refusal } from '../refusal.ts';
import { authenticate, type SignedRequest } from './authenticate.ts';
import { AwsChunked } from './aws-chunked.ts';
import { presign, signRequest } from './signer.ts';
import { knowCredential, SigningKeys } from './signing-keys.ts';
import { EMPTY_SHA256, scopeText, signatureOf, SigningKey } from './sigv4.ts';

// The examples that the Amazon S3 API reference gives with its signatures.
const EXAMPLE_KEY = {
  accessKeyId: 'AKIAIOSFODNN7EXAMPLE',
  secretAccessKey: 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY',
};
const KEYS = new KeyRing([EXAMPLE_KEY]);
const MAY_2013 = parseAmzDate('20130524T000000Z')!;
const SCOPE = 'AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request';
const HOST = 'examplebucket.s3.amazonaws.com';

function request(method: string, url: string, headers: Record<string, string>): SignedRequest {
  const { path, query } = parseTarget(url);
  const map = new Map(Object.entries(headers));
  return { method, path, query: Query.parse(query), headers: map, host: map.get('host') ?? '' };
}

function verify(signed: SignedRequest, nowMs = MAY_2013): ReturnType<typeof authenticate> {
  return authenticate(signed, { keys: KEYS, signingKeys: new SigningKeys(), nowMs });
}

function authorization(signed: string, signature: string): string {
  return `AWS4-HMAC-SHA256 Credential=${SCOPE},SignedHeaders=${signed},Signature=${signature}`;
}

function codeOf(act: () => unknown): string {
  try {
    act();
    return 'accepted';
  } catch (error) {
    assert.ok(error instanceof Refusal, String(error));
    return error.code;
  }
}

const GET_RANGE = request('GET', '/test.txt', {
  host: HOST,
  range: 'bytes=0-9',
  'x-amz-content-sha256': EMPTY_SHA256,
  'x-amz-date': '20130524T000000Z',
  authorization: authorization(
    'host;range;x-amz-content-sha256;x-amz-date',
    'f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41',
  ),
});

const EXAMPLES: Record<string, SignedRequest> = {
  'GET with a range': GET_RANGE,
  'PUT of test$file.text': request('PUT', '/test$file.text', {
    host: HOST,
    date: 'Fri, 24 May 2013 00:00:00 GMT',
    'x-amz-date': '20130524T000000Z',
    'x-amz-storage-class': 'REDUCED_REDUNDANCY',
    'x-amz-content-sha256': '44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072',
    authorization: authorization(
      'date;host;x-amz-content-sha256;x-amz-date;x-amz-storage-class',
      '98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd',
    ),
  }),
  'GET ?lifecycle': request('GET', '/?lifecycle', {
    host: HOST,
    'x-amz-date': '20130524T000000Z',
    'x-amz-content-sha256': EMPTY_SHA256,
    authorization: authorization(
      'host;x-amz-content-sha256;x-amz-date',
      'fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543',
    ),
  }),
  'a listing': request('GET', '/?max-keys=2&prefix=J', {
    host: HOST,
    'x-amz-date': '20130524T000000Z',
    'x-amz-content-sha256': EMPTY_SHA256,
    authorization: authorization(
      'host;x-amz-content-sha256;x-amz-date',
      '34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7',
    ),
  }),
  'a presigned GET': request(
    'GET',
    '/test.txt?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20130524%2Fus-east-1%2Fs3%2F' +
      'aws4_request&X-Amz-Date=20130524T000000Z&X-Amz-Expires=86400&X-Amz-SignedHeaders=host&X-Amz-Signature=' +
      'aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404',
    { host: HOST },
  ),
};

for (const [name, example] of Object.entries(EXAMPLES)) {
  test(`the reference's example is accepted: ${name}`, () => {
    assert.equal(verify(example).accessKeyId, 'AKIAIOSFODNN7EXAMPLE');
  });
}

const CHUNKED = request('PUT', '/examplebucket/chunkObject.txt', {
  host: 's3.amazonaws.com',
  'x-amz-date': '20130524T000000Z',
  'x-amz-storage-class': 'REDUCED_REDUNDANCY',
  'x-amz-content-sha256': 'STREAMING-AWS4-HMAC-SHA256-PAYLOAD',
  'content-encoding': 'aws-chunked',
  'x-amz-decoded-content-length': '66560',
  'content-length': '66824',
  authorization: authorization(
    'content-encoding;content-length;host;x-amz-content-sha256;x-amz-date;x-amz-decoded-content-length;x-amz-storage-class',
    '4f232c4386841ef735655705268965c44a0e4690baa4adea153f7db9fa80a0a9',
  ),
});

const TRAILED = request('PUT', '/examplebucket/chunkObject.txt', {
  host: 's3.amazonaws.com',
  'x-amz-date': '20130524T000000Z',
  'x-amz-storage-class': 'REDUCED_REDUNDANCY',
  'x-amz-content-sha256': 'STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER',
  'content-encoding': 'aws-chunked',
  'x-amz-decoded-content-length': '66560',
  'x-amz-trailer': 'x-amz-checksum-crc32c',
  authorization: authorization(
    'content-encoding;host;x-amz-content-sha256;x-amz-date;x-amz-decoded-content-length;x-amz-storage-class;x-amz-trailer',
    '106e2a8a18243abcf37539882f36619c00e2dfc72633413f02d3b74544bfeb8e',
  ),
});

function chunkedBody(signatures: string[], trailer: string): Buffer {
  const [one, two, last] = signatures as [string, string, string];
  return Buffer.from(
    `10000;chunk-signature=${one}\r\n${'a'.repeat(65_536)}\r\n400;chunk-signature=${two}\r\n${'a'.repeat(1_024)}\r\n` +
      `0;chunk-signature=${last}\r\n${trailer}\r\n`,
  );
}

const CHUNKED_BODY = chunkedBody(
  [
    'ad80c730a21e5b8d04586a2213dd63b9a0e99e0e2307b0ade35a65485a288648',
    '0055627c9e194cb4542bae2aa5492e3c1575bbb81b612b7d234b86a503ef5497',
    'b6c6ea8a5354eaf15b3cb7646744f4275b71ea724fed81ceb9323e279d449df9',
  ],
  '',
);

const TRAILED_BODY = chunkedBody(
  [
    'b474d8862b1487a5145d686f57f013e54db672cee1c953b3010fb58501ef5aa2',
    '1c1344b170168f8e65b41376b44b20fe354e373826ccbbe2c1d40a8cae51e5c7',
    '2ca2aba2005185cf7159c6277faf83795951dd77a3a99e6e65d5c9f85863f992',
  ],
  'x-amz-checksum-crc32c:sOO8/Q==\r\n' +
    'x-amz-trailer-signature:d81f82fc3505edab99d459891051a732e8730629a2e4a59689829ca17fe2e435\r\n',
);

function unframe(signed: SignedRequest, body: Uint8Array, trailers: string[] | undefined): number {
  const framing = new AwsChunked({ decodedLength: 66_560, signing: verify(signed).signing, trailers });
  let count = 0;
  framing.push(body, (piece) => {
    count += piece.length;
  });
  framing.end();
  return count;
}

test("the reference's example of signed chunks is accepted", () => {
  assert.equal(unframe(CHUNKED, CHUNKED_BODY, undefined), 66_560);
});

test("the reference's example of signed chunks with a trailer is accepted", () => {
  assert.equal(unframe(TRAILED, TRAILED_BODY, ['x-amz-checksum-crc32c']), 66_560);
});

test('a byte changed in signed chunks, wherever it is, is refused', () => {
  for (const [signed, body, trailers] of [
    [CHUNKED, CHUNKED_BODY, undefined],
    [TRAILED, TRAILED_BODY, ['x-amz-checksum-crc32c']],
  ] as const) {
    // the bytes of one chunk are alike: a few of them stand for all
    for (let at = 0; at < body.length; at += at > 200 && at < 65_000 ? 997 : 1) {
      const changed = Buffer.from(body);
      // a case bit would leave the value of a hex digit or of a header's name as it was
      changed[at]! ^= 1;
      assert.notEqual(
        codeOf(() => unframe(signed, changed, trailers && [...trailers])),
        'accepted',
        `byte ${at}`,
      );
    }
  }
});

test('a byte changed in anything that is signed is refused', () => {
  const flip = (text: string, at: number): string =>
    text.slice(0, at) + String.fromCharCode(text.charCodeAt(at) ^ 1) + text.slice(at + 1);
  const tries: [string, SignedRequest][] = [];
  const signed = GET_RANGE;
  for (let at = 0; at < signed.method.length; at++)
    tries.push(['method', { ...signed, method: flip(signed.method, at) }]);
  for (let at = 1; at < signed.path.length; at++) tries.push(['path', { ...signed, path: flip(signed.path, at) }]);
  for (let at = 0; at < signed.host.length; at++) tries.push(['host', { ...signed, host: flip(signed.host, at) }]);
  for (const [name, value] of signed.headers) {
    if (name === 'host') continue;
    for (let at = 0; at < value.length; at++) {
      const headers = new Map(signed.headers).set(name, flip(value, at));
      tries.push([`${name} byte ${at}`, { ...signed, headers }]);
    }
  }
  assert.ok(tries.length > 300);
  for (const [what, changed] of tries)
    assert.notEqual(
      codeOf(() => verify(changed)),
      'accepted',
      what,
    );
});

test('a byte changed in a presigned URL is refused', () => {
  const url =
    '/test.txt?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20130524%2Fus-east-1%2Fs3%2F' +
    'aws4_request&X-Amz-Date=20130524T000000Z&X-Amz-Expires=86400&X-Amz-SignedHeaders=host&X-Amz-Signature=' +
    'aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404';
  for (let at = 1; at < url.length; at++) {
    const changed = url.slice(0, at) + String.fromCharCode(url.charCodeAt(at) ^ 1) + url.slice(at + 1);
    assert.notEqual(
      codeOf(() => verify(request('GET', changed, { host: HOST }))),
      'accepted',
      changed,
    );
  }
});

test('the clock may differ by fifteen minutes, not more', () => {
  const minutes = (count: number): string => codeOf(() => verify(GET_RANGE, MAY_2013 + count * 60_000));
  assert.deepEqual([minutes(15), minutes(-15)], ['accepted', 'accepted']);
  assert.deepEqual([minutes(15.01), minutes(-15.01)], ['RequestTimeTooSkewed', 'RequestTimeTooSkewed']);
});

test('a presigned URL is good until it expires, and not before its date', () => {
  const url = presign({
    method: 'GET',
    host: HOST,
    path: '/k',
    credentials: EXAMPLE_KEY,
    region: 'nowhere-1',
    nowMs: MAY_2013,
    expiresSeconds: 60,
  });
  const at = (ms: number): string => codeOf(() => verify(request('GET', url, { host: HOST }), MAY_2013 + ms));
  assert.deepEqual([at(0), at(60_000), at(-60_000)], ['accepted', 'accepted', 'accepted']);
  assert.deepEqual([at(60_001), at(-15 * 60_000 - 1)], ['AccessDenied', 'AccessDenied']);
});

const SIGN = { credentials: EXAMPLE_KEY, region: 'eu-west-9', nowMs: MAY_2013, host: 'h:1' } as const;

test('what our signer signs is accepted, whatever the key, the query and the headers are', (t) => {
  const key = fc.uint8Array({ minLength: 0, maxLength: 20 }).map((bytes) => Buffer.from(bytes).toString('latin1'));
  const name = fc.stringMatching(/^[a-z]{1,8}$/);
  fc.assert(
    fc.property(
      key,
      fc.dictionary(name, fc.string({ unit: 'grapheme' })),
      fc.dictionary(name, fc.stringMatching(/^[ -~\t]{0,20}$/)),
      (text, query, headers) => {
        const path = `/b/${encodeURIComponent(text).replace(/%2F/g, '/')}`;
        const meta = Object.fromEntries(Object.entries(headers).map(([it, value]) => [`x-amz-meta-${it}`, value]));
        const signed = signRequest({ ...SIGN, method: 'PUT', path, query, headers: meta });
        const search = Object.entries(query)
          .map(([it, value]) => `${it}=${encodeURIComponent(value)}`)
          .join('&');
        assert.ok(verify(request('PUT', `${path}?${search}`, signed)));
      },
    ),
    { seed: seedOf(t), numRuns: 300 },
  );
});

test('a bare plus in the path is what the signature says it is', () => {
  const plus = signRequest({ ...SIGN, method: 'GET', path: '/b/a%2Bb' });
  const space = signRequest({ ...SIGN, method: 'GET', path: '/b/a%20b' });
  const key = (headers: Record<string, string>): string =>
    Buffer.from(addressOf(verify(request('GET', '/b/a+b', headers)).path, undefined).key).toString();
  assert.deepEqual([key(plus), key(space)], ['a+b', 'a b']);
});

test('each way to be wrong has its own code', () => {
  const signed = signRequest({ ...SIGN, method: 'GET', path: '/b/k' });
  const wrong = (changes: Record<string, string | undefined>, url = '/b/k'): string => {
    const headers = Object.fromEntries(
      Object.entries({ ...signed, ...changes }).filter((entry): entry is [string, string] => entry[1] !== undefined),
    );
    return codeOf(() => verify(request('GET', url, headers)));
  };
  const { authorization: good = '' } = signed;
  assert.equal(wrong({}), 'accepted');
  assert.equal(wrong({ authorization: good.replace('AKIA', 'BKIA') }), 'InvalidAccessKeyId');
  assert.equal(wrong({ authorization: good.replace(/.$/, (it) => (it === '0' ? '1' : '0')) }), 'SignatureDoesNotMatch');
  assert.equal(wrong({ authorization: good.replace('/s3/', '/ec2/') }), 'AuthorizationHeaderMalformed');
  assert.equal(wrong({ authorization: good.replace('20130524', '20130525') }), 'AuthorizationHeaderMalformed');
  assert.equal(wrong({ authorization: good.slice(0, -1) }), 'AuthorizationHeaderMalformed');
  assert.equal(wrong({ authorization: good.replace('host;', '') }), 'AccessDenied');
  assert.equal(wrong({ authorization: 'AWS AKIAIOSFODNN7EXAMPLE:c2ln' }), 'InvalidRequest');
  assert.equal(wrong({ authorization: 'AWS4-ECDSA-P256-SHA256 Credential=x' }), 'InvalidRequest');
  assert.equal(wrong({ authorization: 'Basic eDp5' }), 'InvalidArgument');
  assert.equal(wrong({ 'x-amz-date': undefined }), 'AccessDenied');
  assert.equal(wrong({ 'x-amz-date': '20130524T006000Z' }), 'AccessDenied');
  assert.equal(wrong({ 'x-amz-content-sha256': undefined }), 'MissingSecurityHeader');
  assert.equal(wrong({ 'x-amz-content-sha256': 'zero' }), 'InvalidArgument');
  assert.equal(wrong({ 'x-amz-acl': 'public-read' }), 'AccessDenied');
  assert.equal(wrong({ 'x-amz-security-token': 'token' }), 'InvalidToken');
  assert.equal(wrong({}, '/b/k?X-Amz-Signature=0'), 'InvalidArgument');
});

test('each way for a presigned URL to be wrong has its own code', () => {
  const good = presign({ ...SIGN, method: 'GET', path: '/b/k', expiresSeconds: 60 });
  const wrong = (change: (url: string) => string): string =>
    codeOf(() => verify(request('GET', change(good), { host: 'h:1' })));
  assert.equal(
    wrong((url) => url),
    'accepted',
  );
  for (const name of ['Algorithm', 'Credential', 'Date', 'Expires', 'SignedHeaders']) {
    const gone = wrong((url) => url.replace(new RegExp(`X-Amz-${name}=[^&]*&`), ''));
    assert.equal(gone, 'AuthorizationQueryParametersError', name);
  }
  for (const value of ['0', '-1', '604801', '1e3', '']) {
    assert.equal(
      wrong((url) => url.replace('Expires=60', `Expires=${value}`)),
      'AuthorizationQueryParametersError',
    );
  }
  assert.equal(
    wrong(() => '/b/k?AWSAccessKeyId=a&Expires=1&Signature=b'),
    'InvalidRequest',
  );
  assert.equal(
    wrong((url) => url.replace(/.$/, (it) => (it === '0' ? '1' : '0'))),
    'SignatureDoesNotMatch',
  );
});

test('a signing key is kept once its signature was right, and never outlives its secret', () => {
  const keys = new KeyRing([EXAMPLE_KEY]);
  const signingKeys = new SigningKeys();
  const verifier = { keys, signingKeys, nowMs: MAY_2013 };
  const signed = signRequest({ ...SIGN, method: 'GET', path: '/b/k' });
  const bad = { ...signed, authorization: signed['authorization']!.replace(/.{64}$/, '0'.repeat(64)) };
  assert.throws(() => authenticate(request('GET', '/b/k', bad), verifier));
  assert.equal(signingKeys.size, 0);
  authenticate(request('GET', '/b/k', signed), verifier);
  assert.equal(signingKeys.size, 1);
  keys.set({ ...EXAMPLE_KEY, secretAccessKey: 'another secret' });
  assert.equal(
    codeOf(() => authenticate(request('GET', '/b/k', signed), verifier)),
    'SignatureDoesNotMatch',
  );
});

test('at most so many signing keys are kept', () => {
  const kept = new SigningKeys(3);
  for (let i = 0; i < 10; i++) {
    const scope = { accessKeyId: 'a', day: '20130524', region: `r${i}`, service: 's3' };
    kept.keep(`a/${scopeText(scope)}`, knowCredential(scope, 'secret'));
  }
  assert.equal(kept.size, 3);
});

test('a signing key signs as HMAC-SHA256 does, whatever the length', (t) => {
  fc.assert(
    fc.property(
      fc.uint8Array({ minLength: 32, maxLength: 32 }),
      fc.stringMatching(/^[ -~]{0,1100}$/),
      (bytes, text) => {
        assert.equal(new SigningKey(bytes).sign(text), signatureOf(bytes, text));
      },
    ),
    { seed: seedOf(t), numRuns: 50 },
  );
});

test('garbage in the Authorization header is refused, whatever it is', (t) => {
  const piece = fc.constantFrom(
    'AWS4-HMAC-SHA256',
    ' ',
    'Credential=',
    SCOPE,
    ',',
    'SignedHeaders=',
    'host',
    ';',
    'Signature=',
    '0'.repeat(64),
    '/',
    'é',
  );
  fc.assert(
    fc.property(
      fc.oneof(
        fc.array(piece).map((it) => it.join('')),
        fc.string(),
      ),
      (text) => {
        const code = codeOf(() =>
          verify(request('GET', '/b/k', { ...Object.fromEntries(GET_RANGE.headers), authorization: text })),
        );
        assert.notEqual(code, 'accepted');
      },
    ),
    { seed: seedOf(t), numRuns: 500 },
  );
});
