import { utf8, WebdfsError } from '@webdfs/base';
import type { PutConditions } from '@webdfs/client';
import type { Answer } from '../../http/answer.ts';
import { DELETE_WIDTH, MAX_DELETE_KEYS } from '../../http/limits.ts';
import { parseEtags } from '../../objects/conditions.ts';
import { checkKey } from '../../objects/write.ts';
import { refusalOf } from '../../errors.ts';
import { Refusal } from '../../refusal.ts';
import { type Call, readDocument, xml } from '../call.ts';
import { childrenOf, textOf, type XmlNode } from '../xml-read.ts';
import { leaf, node, root } from '../xml-write.ts';

interface Victim {
  readonly key: string;
  readonly version: string | undefined;
  readonly conditions: PutConditions | undefined;
}

/** Removes an object. One that is not there is gone, whatever ETag it should have had. @throws what the object layer throws */
export async function removeObject(call: Call, key: Uint8Array, conditions: PutConditions | undefined): Promise<void> {
  checkKey(key);
  try {
    await call.store.remove(call.bucket, key, conditions);
  } catch (error) {
    const isGone =
      error instanceof WebdfsError && error.code === 'PRECONDITION_FAILED' && error.details['exists'] === false;
    if (!isGone) throw error;
  }
}

/** DeleteObjects: each key is deleted, or says why not; the answer is `200` all the same. */
export async function deleteObjects(call: Call): Promise<Answer> {
  const document = await readDocument(call, 'Delete', { digest: 'required' });
  await call.store.bucket(call.bucket);
  const victims = childrenOf(document, 'Object').map(victimOf);
  if (victims.length === 0 || victims.length > MAX_DELETE_KEYS) {
    throw new Refusal('MalformedXML', `A deletion names 1 to ${MAX_DELETE_KEYS} keys, this one ${victims.length}.`);
  }
  const quiet = textOf(document, 'Quiet') === 'true';
  const outcomes: string[] = Array.from({ length: victims.length }, () => '');
  let next = 0;
  const worker = async (): Promise<void> => {
    while (next < victims.length) {
      const index = next++;
      outcomes[index] = await removeOne(call, victims[index]!, quiet);
    }
  };
  await Promise.all(Array.from({ length: DELETE_WIDTH }, worker));
  return xml(root('DeleteResult', ...outcomes));
}

function victimOf(object: XmlNode): Victim {
  const key = textOf(object, 'Key');
  if (key === undefined || key === '') throw new Refusal('MalformedXML', 'An object to be deleted has no key.');
  for (const name of ['LastModifiedTime', 'Size']) {
    if (textOf(object, name) === undefined) continue;
    throw new Refusal('NotImplemented', 'Deletions by size or time are not built yet.');
  }
  const etag = textOf(object, 'ETag');
  return {
    key,
    version: textOf(object, 'VersionId'),
    conditions: etag === undefined ? undefined : { ifMatch: parseEtags(etag) },
  };
}

async function removeOne(call: Call, victim: Victim, quiet: boolean): Promise<string> {
  try {
    if (victim.version !== undefined && victim.version !== '' && victim.version !== 'null') {
      throw new Refusal('NoSuchVersion');
    }
    await removeObject(call, utf8(victim.key), victim.conditions);
    return quiet ? '' : node('Deleted', leaf('Key', victim.key));
  } catch (error) {
    const { code, message } = refusalOf(error);
    return node('Error', leaf('Key', victim.key), leaf('Code', code), leaf('Message', message));
  }
}
