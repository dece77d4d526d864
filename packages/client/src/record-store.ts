import { type Clock, EMPTY, type GroupKey, type PolicyId, type Random, type Sequence } from '@webdfs/base';
import { hashKey } from '@webdfs/placement';
import {
  type Conditions,
  type Layout,
  packOwner,
  packSummary,
  type ReadAnswer,
  type Requirement,
  type Summary,
  unpackOwner,
  unpackSummary,
  type WriteAnswer,
} from '@webdfs/replica';
import type { Groups } from './groups.ts';

/** What the object layer is built on. */
export interface ObjectSeams {
  readonly groups: Groups;
  /** Storage policy of objects, and of buckets. */
  readonly policy: PolicyId;
  readonly clock: Clock;
  readonly random: Random;
}

/** A record as read back. */
export interface StoredRecord {
  readonly sequence: Sequence;
  readonly modifiedMs: number;
  readonly summary: Summary;
  /** The summary's bytes, for `etagOf`. */
  readonly packedSummary: Uint8Array;
  readonly layout: Layout;
  /** JSON of its owner. */
  readonly facts: string;
  /** The bytes, when inline. */
  readonly body: Uint8Array;
}

/** Which record: its key, and where it lives. Rows beside an object live in the object's group. */
export interface Place extends GroupKey {
  readonly key: Uint8Array;
  readonly hashHigh: number;
  readonly hashLow: number;
}

export interface RecordContent {
  readonly summary: Summary;
  readonly layout: Layout;
  readonly facts: string;
  /** The bytes, when inline. */
  readonly inline: Uint8Array;
}

export interface WriteOptions {
  readonly conditions?: Conditions;
  readonly requires?: readonly Requirement[];
  readonly closes?: Uint8Array;
}

const REQUEST_ID_BYTES = 16;
const NO_CONDITIONS: Conditions = {};
const NOTHING_REQUIRED: readonly Requirement[] = [];

/** Records of one policy by key: finds their groups, packs and unpacks them, gives each write its request id. */
export class RecordStore {
  readonly seams: ObjectSeams;

  constructor(seams: ObjectSeams) {
    this.seams = seams;
  }

  place(key: Uint8Array): Place {
    const { high, low } = hashKey(key);
    const { policy, group } = this.seams.groups.groupOf(this.seams.policy, high);
    return { policy, group, key, hashHigh: high, hashLow: low };
  }

  /** The place of a row that lives beside the record of `owner`. */
  beside(owner: Place, key: Uint8Array): Place {
    return { ...owner, key };
  }

  async read({ policy, group, key }: Place): Promise<StoredRecord | undefined> {
    const answer = await this.seams.groups.read({ policy, group, key, entry: true });
    return answer && unpack(answer);
  }

  /** The row alone: whether the record is there, and in which version. */
  async row({
    policy,
    group,
    key,
  }: Place): Promise<{ sequence: Sequence; modifiedMs: number; summary: Uint8Array } | undefined> {
    return await this.seams.groups.read({ policy, group, key, entry: false });
  }

  put(place: Place, content: RecordContent, options: WriteOptions = {}): Promise<WriteAnswer> {
    const { owner, body } = packOwner(content.layout, content.facts);
    const summary = packSummary(content.summary);
    return this.#write(place, { kind: 'put', summary, owner, body: body ?? content.inline, ...options });
  }

  remove(place: Place, options: WriteOptions = {}): Promise<WriteAnswer> {
    return this.#write(place, { kind: 'delete', summary: EMPTY, owner: EMPTY, body: EMPTY, ...options });
  }

  #write(
    place: Place,
    write: WriteOptions & { kind: 'put' | 'delete'; summary: Uint8Array; owner: Uint8Array; body: Uint8Array },
  ): Promise<WriteAnswer> {
    const { conditions = NO_CONDITIONS, requires = NOTHING_REQUIRED, ...rest } = write;
    const requestId = this.seams.random.bytes(REQUEST_ID_BYTES);
    return this.seams.groups.write({ ...place, ...rest, requestId, ageMs: 0, conditions, requires });
  }
}

function unpack(answer: ReadAnswer): StoredRecord {
  const { layout, facts } = unpackOwner(answer.owner, answer.body);
  return {
    sequence: answer.sequence,
    modifiedMs: answer.modifiedMs,
    summary: unpackSummary(answer.summary),
    packedSummary: answer.summary,
    layout,
    facts,
    body: answer.body,
  };
}
