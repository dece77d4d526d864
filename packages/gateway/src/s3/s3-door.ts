import type { Answer } from '../http/answer.ts';
import type { Exchange } from '../http/exchange.ts';
import { addressOf, bucketOfHost, decodePath } from '../http/target.ts';
import type { Context } from '../context.ts';
import { Refusal } from '../refusal.ts';
import { REPORTS, serveReport } from '../reports.ts';
import { authenticate, type Authenticated, claimsSignature } from './authenticate.ts';
import type { Call } from './call.ts';
import { UNSIGNED } from './payload.ts';
import { type Route, ROUTES, type Subject, SUBRESOURCES } from './routes.ts';

/**
 * Answers one S3 request: who asks, what about, which operation.
 *
 * @throws Refusal, and what the object layer throws
 */
export async function serveS3(exchange: Exchange, context: Context): Promise<Answer> {
  const found = authenticated(exchange, context);
  const path = found?.path ?? decodePath(exchange.target.path, false);
  const { bucket, key } = addressOf(path, bucketOfHost(exchange.host, context.domains));
  if (bucket === REPORTS) {
    if (found === undefined) throw new Refusal('AccessDenied');
    return await serveReport(exchange, key, context.reporter);
  }
  const { store, region } = context;
  const call: Call = {
    exchange,
    store,
    region,
    bucket,
    key,
    accessKeyId: found?.accessKeyId,
    signing: found ?? UNSIGNED,
  };
  const route = routeOf(call);
  if (found === undefined) await checkPublic(call, route);
  return await route.run(call);
}

function authenticated(exchange: Exchange, context: Context): Authenticated | undefined {
  const { headers, query, method, target, host } = exchange;
  if (!claimsSignature(headers, query)) return undefined;
  const { keys, signingKeys } = context;
  return authenticate(
    { method, path: target.path, query, headers, host },
    { keys, signingKeys, nowMs: exchange.nowMs },
  );
}

function subjectOf(call: Call): Subject {
  if (call.bucket === '') return 'service';
  return call.key.length === 0 ? 'bucket' : 'object';
}

/** The name of what the query makes of a request, such as `uploads`; undefined: the plain operation. */
function subresourceOf(call: Call): string | undefined {
  const { query } = call.exchange;
  if (query.size === 0) return undefined;
  if (query.has('uploadId')) return 'uploadId';
  const name = query.names().find((it) => SUBRESOURCES.has(it));
  // the only type there is beside none
  if (name === 'list-type' && query.get(name) !== '2') return undefined;
  return name;
}

/** @throws Refusal NotImplemented, MethodNotAllowed, NoSuchVersion */
function routeOf(call: Call): Route {
  const { exchange } = call;
  const subject = subjectOf(call);
  const subresource = subresourceOf(call);
  const copies = subject === 'object' && exchange.method === 'PUT' && exchange.headers.has('x-amz-copy-source');
  const name = [exchange.method, subresource, copies ? 'copy' : undefined].filter((it) => it !== undefined).join(' ');
  const route = ROUTES[subject][name];
  if (route === undefined) throw noRoute(call, subject, subresource);
  if (subject === 'object') checkVersion(exchange.query.get('versionId'));
  return route;
}

function noRoute(call: Call, subject: Subject, subresource: string | undefined): Refusal {
  const { method } = call.exchange;
  if (method === 'OPTIONS') return new Refusal('AccessForbidden');
  if (subresource !== undefined) {
    return new Refusal('NotImplemented', `${method} ?${subresource} of a ${subject} is not built yet.`);
  }
  if (subject === 'bucket' && method === 'POST')
    return new Refusal('NotImplemented', 'Uploads by form are not built yet.');
  return new Refusal('MethodNotAllowed', undefined, {
    fields: { Method: method, ResourceType: subject.toUpperCase() },
  });
}

function checkVersion(version: string | undefined): void {
  if (version !== undefined && version !== '' && version !== 'null') throw new Refusal('NoSuchVersion');
}

/** Without a signature only public buckets are open, and only to be read. */
async function checkPublic(call: Call, route: Route): Promise<void> {
  if (!route.public) throw new Refusal('AccessDenied');
  const bucket = await call.store.bucket(call.bucket);
  if (bucket.access !== 'public-read') throw new Refusal('AccessDenied');
}
