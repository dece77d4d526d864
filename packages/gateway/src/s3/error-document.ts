import type { Answer } from '../http/answer.ts';
import type { Refusal } from '../refusal.ts';
import { documentOf, leaf, node } from './xml-write.ts';

export interface ErrorPlace {
  readonly resource: string;
  readonly requestId: string;
  readonly hostId: string;
}

/** S3's error document, without the declaration. */
export function errorElement(refusal: Refusal, place: ErrorPlace): string {
  return node(
    'Error',
    leaf('Code', refusal.code),
    leaf('Message', refusal.message),
    ...Object.entries(refusal.fields).map(([name, value]) => leaf(name, value)),
    leaf('Resource', place.resource),
    leaf('RequestId', place.requestId),
    leaf('HostId', place.hostId),
  );
}

/** A refusal as S3 answers it. `304` has no document. */
export function errorAnswer(refusal: Refusal, place: ErrorPlace): Answer {
  if (refusal.status === 304) return { status: 304, headers: refusal.headers };
  return {
    status: refusal.status,
    headers: ['Content-Type', 'application/xml', ...refusal.headers],
    body: documentOf(errorElement(refusal, place)),
  };
}
