import type { Context } from '../context.ts';
import type { Answer } from '../http/answer.ts';
import type { Exchange } from '../http/exchange.ts';
import { type Address, addressOf, bucketOfHost, decodePath } from '../http/target.ts';
import { writeConditions } from '../objects/conditions.ts';
import { factsOf } from '../objects/facts.ts';
import { readObject } from '../objects/read.ts';
import { checkKey, writeObject } from '../objects/write.ts';
import { Refusal } from '../refusal.ts';
import { Payload, UNSIGNED } from '../s3/payload.ts';

const BEARER = /^bearer +([A-Za-z0-9._~+/=-]{1,512}) *$/i;

/**
 * Plain HTTP: PUT, GET, HEAD and DELETE on `/bucket/key` with a bearer token, through the same object layer as S3.
 *
 * @throws Refusal, and what the object layer throws
 */
export async function servePlain(exchange: Exchange, context: Context): Promise<Answer> {
  const token = BEARER.exec(exchange.headers.get('authorization') ?? '')?.[1];
  if (token === undefined || context.keys.bearer(token) === undefined) {
    throw new Refusal('Unauthorized', undefined, { headers: ['WWW-Authenticate', 'Bearer'] });
  }
  const path = decodePath(exchange.target.path, false);
  const address = addressOf(path, bucketOfHost(exchange.host, context.domains));
  if (address.bucket === '' || address.key.length === 0) throw new Refusal('NoSuchKey', 'Objects are at /bucket/key.');
  return await serveObject(exchange, context, address);
}

async function serveObject(exchange: Exchange, { store }: Context, { bucket, key }: Address): Promise<Answer> {
  switch (exchange.method) {
    case 'GET':
    case 'HEAD':
      return await readObject({ exchange, store, bucket, key });
    case 'PUT': {
      const payload = new Payload(exchange, UNSIGNED);
      const facts = factsOf(exchange.headers);
      const result = await writeObject({ exchange, store, bucket, key, facts, payload });
      return { status: 201, headers: ['ETag', `"${result.etag}"`] };
    }
    case 'DELETE': {
      checkKey(key);
      const was = await store.remove(bucket, key, writeConditions(exchange.headers));
      if (!was) throw new Refusal('NoSuchKey');
      return { status: 204, headers: [] };
    }
    default:
      throw new Refusal('MethodNotAllowed', undefined, { headers: ['Allow', 'GET, HEAD, PUT, DELETE'] });
  }
}

/** A refusal as the plain door answers it: one line, or JSON for those who ask for it. */
export function plainError(refusal: Refusal, exchange: Exchange): Answer {
  if (refusal.status === 304) return { status: 304, headers: refusal.headers };
  const { code, message, status, headers } = refusal;
  if (/\bapplication\/json\b/.test(exchange.headers.get('accept') ?? '')) {
    const body = `${JSON.stringify({ code, message, requestId: exchange.id })}\n`;
    return { status, headers: ['Content-Type', 'application/json', ...headers], body };
  }
  return { status, headers: ['Content-Type', 'text/plain; charset=utf-8', ...headers], body: `${code}: ${message}\n` };
}
