import { codeOf } from '@webdfs/base';
import type { Bucket } from '@webdfs/client';
import type { Answer } from '../../http/answer.ts';
import { Refusal } from '../../refusal.ts';
import { type Call, empty, hasBody, readDocument, xml } from '../call.ts';
import { cannedAccess, checkFeatures } from '../features.ts';
import { textOf } from '../xml-read.ts';
import { escapeXml, leaf, root } from '../xml-write.ts';

const NAME = /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/;
/** Between periods stand labels of a host name, which neither are empty nor begin or end with a hyphen. */
const BAD_LABEL = /\.[.-]|-\./;
const IP_ADDRESS = /^\d+\.\d+\.\d+\.\d+$/;
const RESERVED = /^(?:xn--|sthree-|amzn-s3-demo-)|(?:-s3alias|--ol-s3|\.mrap|--x-s3|--table-s3)$/;

/** S3's rules for the names of general purpose buckets. */
function isBucketName(name: string): boolean {
  return NAME.test(name) && !BAD_LABEL.test(name) && !IP_ADDRESS.test(name) && !RESERVED.test(name);
}

/** The region in which a bucket without one is. */
const NAMELESS_REGION = 'us-east-1';

function accessOf(call: Call): Bucket['access'] {
  const acl = cannedAccess(call.exchange.headers) ?? 'private';
  if (acl === 'private' || acl === 'public-read') return acl;
  throw new Refusal('NotImplemented', `A bucket is private or public-read; ${acl} is not built yet.`);
}

export async function createBucket(call: Call): Promise<Answer> {
  const { store, bucket: name, accessKeyId: owner = '' } = call;
  if (!isBucketName(name)) throw new Refusal('InvalidBucketName', undefined, { fields: { BucketName: name } });
  checkFeatures(call.exchange.headers);
  const access = accessOf(call);
  const region = hasBody(call) ? await locationIn(call) : undefined;
  try {
    await store.createBucket(name, { owner, access, region: region ?? call.region });
  } catch (error) {
    if (codeOf(error) !== 'ALREADY_EXISTS') throw error;
    const existing = await store.bucket(name);
    throw new Refusal(existing.owner === owner ? 'BucketAlreadyOwnedByYou' : 'BucketAlreadyExists', undefined, {
      fields: { BucketName: name },
    });
  }
  return empty(200, ['Location', `/${name}`]);
}

async function locationIn(call: Call): Promise<string | undefined> {
  const document = await readDocument(call, 'CreateBucketConfiguration', { digest: 'optional' });
  const location = textOf(document, 'LocationConstraint');
  if (location === undefined || location === '') return undefined;
  if (!/^[A-Za-z0-9-]{1,32}$/.test(location)) throw new Refusal('IllegalLocationConstraintException');
  return location;
}

export async function headBucket(call: Call): Promise<Answer> {
  const bucket = await call.store.bucket(call.bucket);
  return empty(200, ['x-amz-bucket-region', bucket.region, 'Content-Type', 'application/xml']);
}

export async function deleteBucket(call: Call): Promise<Answer> {
  await call.store.deleteBucket(call.bucket);
  return empty(204);
}

export async function bucketLocation(call: Call): Promise<Answer> {
  const { region } = await call.store.bucket(call.bucket);
  return xml(root('LocationConstraint', region === NAMELESS_REGION ? '' : escapeXml(region)));
}

/** PutBucketAcl by its header; a list of grants in the body is not built. */
export async function putBucketAcl(call: Call): Promise<Answer> {
  if (hasBody(call) || !call.exchange.headers.has('x-amz-acl')) {
    throw new Refusal('NotImplemented', 'The access of a bucket is set by the header x-amz-acl alone.');
  }
  checkFeatures(call.exchange.headers);
  await call.store.setBucketAccess(call.bucket, accessOf(call));
  return empty(200);
}

/** What clients ask of a bucket before they begin: each is answered as S3 does for a bucket that has none of it. */
export function bucketHas(document: string): (call: Call) => Promise<Answer> {
  return async (call) => {
    await call.store.bucket(call.bucket);
    return xml(document);
  };
}

export function bucketLacks(code: Refusal['code']): (call: Call) => Promise<Answer> {
  return async (call) => {
    await call.store.bucket(call.bucket);
    throw new Refusal(code, undefined, { fields: { BucketName: call.bucket } });
  };
}

export async function policyStatus(call: Call): Promise<Answer> {
  const { access } = await call.store.bucket(call.bucket);
  return xml(root('PolicyStatus', leaf('IsPublic', access === 'public-read')));
}
