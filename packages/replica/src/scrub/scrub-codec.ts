import { fromHex, fromUtf8, Reader, toHex, utf8, WebdfsError, Writer } from '@webdfs/base';
import type { Message } from '@webdfs/wire';
import { Attachment, putSection, takeSection } from '../attachment.ts';
import { REQUEST_FORMAT, takeFormat } from '../request-codec.ts';
import { FAULTS } from './judgement.ts';
import {
  arrayOf,
  type Completion,
  isCompletion,
  isPass,
  isProblem,
  isRecord,
  numberOf,
  numbersOf,
  type Pass,
} from './pass.ts';
import { emptyTally, type Problem, type Tally } from './tally.ts';

/** Bytes of JSON in one answer; of the problems only as many are told as leave room for the rest. */
const MAX_ANSWER_BYTES = 786_432;
const MAX_PROBLEM_BYTES = 393_216;
/** Groups that are named with the reason why they are not counted; of others the reason is not told. */
export const MAX_REASONS = 256;

/** What is asked of a node, all of it optional. */
export interface ScrubRequest {
  /** Map revision of the asker: the answer is by this map or a later one. */
  readonly revision: number;
  /** To be gone on with, if it is later than the node's own. */
  readonly pass?: Pass;
  /** To be remembered, if it is later than the node's own. */
  readonly completion?: Completion;
}

/** What one node has counted of one policy's groups: those that it serves, with the members that they have now. */
export interface PolicyCount {
  readonly policy: number;
  /** Bit g of byte g / 8: group g is counted. */
  readonly counted: Uint8Array;
  readonly tally: Tally;
}

/** How far one node is with its pass. */
export interface NodeScrub {
  readonly node: number;
  readonly revision: number;
  readonly pass: Pass | undefined;
  /** stuck: what is left has failed more than once, and is tried again now and then. */
  readonly state: 'working' | 'stuck' | 'done';
  readonly policies: readonly PolicyCount[];
  /** Why groups that this node serves are not counted, for some of them. */
  readonly reasons: readonly { readonly policy: number; readonly group: number; readonly why: string }[];
  readonly served: number;
  readonly volumes: { readonly read: number; readonly of: number; readonly bytes: number; readonly done: boolean };
  readonly bytesPerSecond: number;
  /** Bytes of one copy of what it has to count. */
  readonly bytesTotal: number;
  readonly completion: Completion | undefined;
}

const STATES = ['working', 'stuck', 'done'] as const;

function pack(value: unknown): Message {
  const text = utf8(JSON.stringify(value));
  const head = new Writer(16).u8(REQUEST_FORMAT);
  putSection(head, text);
  return { head: head.take(), attached: [text] };
}

function unpack(message: Message): Record<string, unknown> {
  const head = new Reader(message.head);
  const attachment = new Attachment(message.attached);
  takeFormat(head);
  const bytes = takeSection(head, attachment, MAX_ANSWER_BYTES);
  head.end();
  attachment.end();
  let value: unknown;
  try {
    value = JSON.parse(fromUtf8(bytes));
  } catch (error) {
    throw new WebdfsError('CORRUPT', 'what was said of a scrub is not JSON', { cause: error });
  }
  if (!isRecord(value)) throw new WebdfsError('CORRUPT', 'what was said of a scrub lacks its fields');
  return value;
}

export function encodeScrubRequest(request: ScrubRequest): Message {
  return pack(request);
}

/** @throws CORRUPT, TOO_LARGE, NEWER_FORMAT; INVALID for a pass that cannot be */
export function decodeScrubRequest(message: Message): ScrubRequest {
  const { revision, pass, completion } = unpack(message);
  if (pass !== undefined && !isPass(pass)) throw new WebdfsError('INVALID', 'no pass that could be begun');
  return {
    revision: numberOf(revision),
    ...(pass === undefined ? {} : { pass }),
    ...(isCompletion(completion) ? { completion } : {}),
  };
}

export function encodeNodeScrub(scrub: NodeScrub): Message {
  let room = MAX_PROBLEM_BYTES;
  const policies = scrub.policies.map(({ policy, counted, tally }) => {
    const problems: Problem[] = [];
    for (const problem of tally.problems) {
      room -= JSON.stringify(problem).length;
      if (room > 0) problems.push(problem);
    }
    const omitted = tally.omitted + tally.problems.length - problems.length;
    return { policy, counted: toHex(counted), tally: { ...tally, problems, omitted } };
  });
  return pack({ ...scrub, policies, reasons: scrub.reasons.slice(0, MAX_REASONS) });
}

/** @throws CORRUPT, TOO_LARGE, NEWER_FORMAT */
export function decodeNodeScrub(message: Message): NodeScrub {
  const value = unpack(message);
  const { volumes, completion, pass } = value;
  const state = STATES.find((name) => name === value['state']);
  if (state === undefined || !isRecord(volumes)) throw new WebdfsError('CORRUPT', 'a scrub lacks its fields');
  return {
    node: numberOf(value['node']),
    revision: numberOf(value['revision']),
    pass: isPass(pass) ? pass : undefined,
    state,
    policies: arrayOf(value['policies']).filter(isRecord).map(policyOf),
    reasons: arrayOf(value['reasons']).filter(isRecord).map(reasonOf),
    served: numberOf(value['served']),
    volumes: {
      read: numberOf(volumes['read']),
      of: numberOf(volumes['of']),
      bytes: numberOf(volumes['bytes']),
      done: volumes['done'] === true,
    },
    bytesPerSecond: numberOf(value['bytesPerSecond']),
    bytesTotal: numberOf(value['bytesTotal']),
    completion: isCompletion(completion) ? completion : undefined,
  };
}

function policyOf(value: Record<string, unknown>): PolicyCount {
  const { policy, counted } = value;
  if (typeof counted !== 'string') throw new WebdfsError('CORRUPT', 'a scrub does not say what it counted');
  return { policy: numberOf(policy), counted: fromHex(counted), tally: tallyOf(value['tally']) };
}

function reasonOf(value: Record<string, unknown>): { policy: number; group: number; why: string } {
  return { policy: numberOf(value['policy']), group: numberOf(value['group']), why: String(value['why']) };
}

function tallyOf(value: unknown): Tally {
  const tally = emptyTally();
  if (!isRecord(value)) throw new WebdfsError('CORRUPT', 'a scrub does not say what it found');
  const found = isRecord(value['found']) ? value['found'] : {};
  for (const fault of FAULTS) tally.found[fault] = numberOf(found[fault]);
  return {
    ...tally,
    objects: numbersOf(value['objects']),
    others: numbersOf(value['others']),
    bytes: numberOf(value['bytes']),
    mended: numberOf(value['mended']),
    left: numberOf(value['left']),
    problems: arrayOf(value['problems']).filter(isProblem),
    omitted: numberOf(value['omitted']),
  };
}
