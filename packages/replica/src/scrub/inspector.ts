import { type NodeId, type Sequence, sleep, WebdfsError } from '@webdfs/base';
import type { ReplicaHost } from '../replica-host.ts';
import type { VerifyItem } from '../verify-codec.ts';
import { VERB } from '../verbs.ts';
import { type Judgement, judge, type Witness } from './judgement.ts';
import { decodeLookAnswer, encodeLooks, type Look, MAX_LOOKS } from './look-codec.ts';

export interface Question {
  readonly item: VerifyItem;
  /** The highest tombstone of the key that a member was seen to have. */
  readonly buriedAt?: Sequence;
  /** A committed record names it. */
  readonly isNamed?: boolean;
}

export interface Inspected {
  readonly item: VerifyItem;
  readonly judgement: Judgement;
}

const CALL_MS = 60_000;
/** Rounds until everybody has applied the same writes to a thing, and the pause between them. */
const ROUNDS = 40;
const ROUND_PAUSE_MS = 25;

/** One thing under examination. */
interface Case {
  readonly question: Question;
  /** What the primary had when the examination began. */
  first: Look | undefined;
  /** Versions that a member was seen to have damaged: repair may be quicker than the next look. */
  readonly damaged: Map<NodeId, Sequence>;
}

interface Seen {
  readonly look: Look;
  readonly suspect: boolean;
}

/**
 * Asks all members what they have of some things until what they say is of one time, and judges it.
 *
 * Members apply a committed write a little later than the primary, and clients go on writing. So a copy is only held
 * against a member that has applied all that the primary had applied before it was asked; and a copy is right if it is any
 * version that the primary had between its first answer and its last.
 */
export class Inspector {
  readonly #host: ReplicaHost;
  readonly #bytesPerSecond: number;
  readonly #signal: AbortSignal;
  /** Bytes that all members have read and verified for this inspector. */
  bytesRead = 0;

  constructor(host: ReplicaHost, options: { bytesPerSecond: number; signal: AbortSignal }) {
    this.#host = host;
    this.#bytesPerSecond = options.bytesPerSecond;
    this.#signal = options.signal;
  }

  /**
   * @param members  of the group that all things belong to, the primary first
   * @throws BUSY if a thing changes too fast to be judged; what links throw: then nothing is known
   */
  async inspect(members: readonly NodeId[], questions: readonly Question[]): Promise<Inspected[]> {
    const results: (Inspected | undefined)[] = questions.map(() => undefined);
    let open = questions.map((question, at): [number, Case] => [
      at,
      { question, first: undefined, damaged: new Map() },
    ]);
    for (let round = 1; open.length > 0; round++) {
      if (round > ROUNDS)
        throw new WebdfsError('BUSY', `${open.length} things change faster than they can be looked at`);
      if (round > 1) await sleep(this.#host.clock, ROUND_PAUSE_MS, this.#signal);
      const judged = await this.#round(
        members,
        open.map(([, one]) => one),
      );
      for (const [i, [at, one]] of open.entries()) {
        const judgement = judged[i];
        if (judgement !== undefined) results[at] = { item: one.question.item, judgement };
      }
      open = open.filter((_, i) => judged[i] === undefined);
    }
    return results.filter((result) => result !== undefined);
  }

  async #round(members: readonly NodeId[], cases: readonly Case[]): Promise<(Judgement | undefined)[]> {
    const items = cases.map(({ question }) => question.item);
    const [primary, ...others] = members;
    if (primary === undefined) throw new WebdfsError('UNAVAILABLE', 'the group has no member to ask');
    const answers = [await this.#ask(primary, items, true)];
    answers.push(...(await Promise.all(others.map((node) => this.#ask(node, items, true)))));
    const seen = items.map((_, i) => answers.map((answer) => answer[i]!));
    const doubtful = seen.flatMap((each, i) => (areEqual(each) ? [] : [i]));
    const last = await this.#ask(
      primary,
      doubtful.map((i) => items[i]!),
      false,
    );
    return cases.map((one, i) => {
      const at = doubtful.indexOf(i);
      const latest = at < 0 ? seen[i]![0]! : last[at]!;
      return settle(one, members, seen[i]!, latest.look);
    });
  }

  async #ask(node: NodeId, items: readonly VerifyItem[], isRead: boolean): Promise<Seen[]> {
    const seen: Seen[] = [];
    while (seen.length < items.length) {
      const part = items.slice(seen.length, seen.length + MAX_LOOKS);
      const message = encodeLooks(part, isRead ? this.#bytesPerSecond : 0);
      const options = { deadlineMs: CALL_MS, signal: this.#signal };
      const { suspect, looks } = decodeLookAnswer(await this.#host.link(node).call(VERB.LOOK, message, options));
      if (looks.length === 0 || looks.length > part.length) {
        throw new WebdfsError('CORRUPT', `node ${node} answered ${looks.length} of ${part.length} looks`);
      }
      for (const look of looks) {
        this.bytesRead += look.bytes;
        seen.push({ look, suspect });
      }
    }
    return seen;
  }
}

function areEqual(seen: readonly Seen[]): boolean {
  const { look } = seen[0]!;
  return seen.every(
    (other) =>
      other.look.state === look.state && other.look.sequence === look.sequence && other.look.check === look.check,
  );
}

/** Undefined: they cannot be compared yet. */
function settle(one: Case, members: readonly NodeId[], seen: readonly Seen[], last: Look): Judgement | undefined {
  one.first ??= seen[0]!.look;
  const { first } = one;
  for (const [i, node] of members.entries()) {
    const { look } = seen[i]!;
    if (look.state === 'damaged') one.damaged.set(node, look.sequence);
  }
  // it came or went meanwhile: begin anew with what there is now
  if ((first.state === 'absent') !== (last.state === 'absent')) {
    one.first = last;
    return undefined;
  }
  const isLate = seen.some(({ look }) => look.commit < first.commit && look.sequence < first.sequence);
  const missesEnd = first.state === 'absent' && seen.some(({ look }) => look.commit < first.commit);
  if (isLate || missesEnd) return undefined;
  if (first.sequence !== last.sequence) return settleMoving(members, seen, { first, last });
  const witnesses = members.map((node, i): Witness => {
    const { look, suspect } = seen[i]!;
    const wasDamaged = look.state === 'intact' && one.damaged.get(node) === look.sequence;
    return { node, suspect, look: wasDamaged ? { ...look, state: 'damaged' } : look };
  });
  const { buriedAt = 0, isNamed = false } = one.question;
  return judge(witnesses, { buriedAt, isNamed });
}

/** A key that is being written: whoever has one of the versions that the primary had meanwhile is right. */
function settleMoving(
  members: readonly NodeId[],
  seen: readonly Seen[],
  { first, last }: { first: Look; last: Look },
): Judgement | undefined {
  const areRight = seen.every(
    ({ look }) => look.state === 'intact' && look.sequence >= first.sequence && look.sequence <= last.sequence,
  );
  if (!areRight) return undefined;
  return { type: 'held', sequence: last.sequence, check: 0, good: members, wrong: [] };
}
