import type { Bucket } from '@webdfs/client';
import type { Answer } from '../../http/answer.ts';
import { type Call, xml } from '../call.ts';
import { escapeXml, leaf, node, root } from '../xml-write.ts';

const XSI = 'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"';
const EVERYONE = 'http://acs.amazonaws.com/groups/global/AllUsers';

function policyOf(bucket: Bucket): string {
  const owner = escapeXml(bucket.owner);
  const person = `<ID>${owner}</ID><DisplayName>${owner}</DisplayName>`;
  const grants = [
    node('Grant', `<Grantee ${XSI} xsi:type="CanonicalUser">${person}</Grantee>`, leaf('Permission', 'FULL_CONTROL')),
  ];
  if (bucket.access === 'public-read') {
    const everyone = `<Grantee ${XSI} xsi:type="Group">${leaf('URI', EVERYONE)}</Grantee>`;
    grants.push(node('Grant', everyone, leaf('Permission', 'READ')));
  }
  return root('AccessControlPolicy', node('Owner', person), node('AccessControlList', ...grants));
}

/** GetBucketAcl: the owner may do all; everyone may read what is public. */
export async function bucketAcl(call: Call): Promise<Answer> {
  return xml(policyOf(await call.store.bucket(call.bucket)));
}

/** GetObjectAcl: an object has the access of its bucket. */
export async function objectAcl(call: Call): Promise<Answer> {
  await call.store.head(call.bucket, call.key);
  return bucketAcl(call);
}
