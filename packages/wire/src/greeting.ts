import { equalBytes, type NodeId, WebdfsError } from '@webdfs/base';
import { KIND, type Kind } from './frame.ts';
import {
  commonVersion,
  type Hello,
  packHello,
  proofIn,
  proofOf,
  PROOF_BYTES,
  putProof,
  sameProof,
  transcript,
  unpackHello,
} from './hello.ts';
import type { Lane, LaneUser } from './lane.ts';

export interface GreetingOptions {
  readonly me: Hello;
  /** Link keys, the present one first; the others are accepted too, so that a secret can be changed while running. */
  readonly keys: readonly Uint8Array[];
  /** For an acceptor: the keys for this dialler, if not those; the first is the one by which both are to prove themselves. */
  readonly keysFor?: (dialler: Hello) => readonly Uint8Array[];
  /** The peer is who it says: gives who takes the lane's frames from now on, and what to do once it does. */
  readonly onProven: (peer: Hello, version: number | undefined) => { user: LaneUser; start: () => void };
  /** It did not come to that. */
  readonly onFailed: (cause: string) => void;
}

abstract class Greeting implements LaneUser {
  readonly options: GreetingOptions;
  #lane: Lane | undefined;

  constructor(options: GreetingOptions) {
    this.options = options;
  }

  get lane(): Lane {
    return this.#lane!;
  }

  greet(lane: Lane): void {
    this.#lane = lane;
  }

  abstract frame(kind: Kind, stream: number, head: Uint8Array, attached: Uint8Array): void;

  data(): void {
    throw new WebdfsError('WIRE_CORRUPT', 'a body before the greeting');
  }

  fill(): void {
    // Nothing but greetings so far.
  }

  closed(cause: string): void {
    this.options.onFailed(cause);
  }

  protected proven(peer: Hello): void {
    const { user, start } = this.options.onProven(peer, commonVersion(this.options.me, peer));
    this.lane.trust(user);
    start();
  }
}

/** The dialler's side: HELLO →, ← HELLO with proof, PROOF →. It checks first, then proves. */
export class Dialling extends Greeting {
  readonly #expected: NodeId;
  readonly #hello: Uint8Array;

  constructor(expected: NodeId, options: GreetingOptions) {
    super(options);
    this.#expected = expected;
    this.#hello = packHello(options.me);
  }

  override greet(lane: Lane): void {
    super.greet(lane);
    lane.sendControl(KIND.HELLO, 0, this.#hello);
  }

  /** @throws WIRE_CORRUPT, WRONG_PEER, ACCESS_DENIED */
  frame(kind: Kind, _stream: number, head: Uint8Array): void {
    if (kind !== KIND.HELLO) throw new WebdfsError('WIRE_CORRUPT', `greeting of kind ${kind}`);
    const { me, keys } = this.options;
    const peer = unpackHello(head);
    if (peer.cluster !== me.cluster) throw new WebdfsError('WRONG_PEER', `peer is of cluster ${peer.cluster}`);
    const text = transcript(this.#hello, head, this.lane.exporter());
    const proof = proofIn(head);
    const key = keys.find((key) => sameProof(proofOf('acceptor', key, text), proof));
    if (key === undefined) throw new WebdfsError('ACCESS_DENIED', 'peer does not know the cluster secret');
    if (peer.node !== this.#expected || peer.node === me.node) {
      throw new WebdfsError('WRONG_PEER', `node ${peer.node} answers where node ${this.#expected} should`);
    }
    if (peer.lane !== me.lane) throw new WebdfsError('WIRE_CORRUPT', `peer answers for lane ${peer.lane}`);
    this.lane.sendControl(KIND.PROOF, 0, proofOf('dialler', key, text));
    this.proven(peer);
  }
}

/** The acceptor's side. Whoever fails is closed without a word. */
export class Accepting extends Greeting {
  /** Whether a node may connect for this lane at all. */
  readonly #welcome: (hello: Hello) => boolean;
  #peer: { hello: Hello; text: Uint8Array; key: Uint8Array } | undefined;

  constructor(welcome: (hello: Hello) => boolean, options: GreetingOptions) {
    super(options);
    this.#welcome = welcome;
  }

  /** @throws WIRE_CORRUPT, WRONG_PEER, ACCESS_DENIED */
  frame(kind: Kind, _stream: number, head: Uint8Array, attached: Uint8Array): void {
    if (attached.length > 0) throw new WebdfsError('WIRE_CORRUPT', 'greeting with attached bytes');
    if (this.#peer === undefined) this.#hello(kind, head);
    else this.#proof(kind, head, this.#peer);
  }

  #hello(kind: Kind, head: Uint8Array): void {
    if (kind !== KIND.HELLO) throw new WebdfsError('WIRE_CORRUPT', `greeting of kind ${kind}`);
    const { me, keys } = this.options;
    const hello = unpackHello(head);
    if (hello.cluster !== me.cluster) throw new WebdfsError('WRONG_PEER', `dialler is of cluster ${hello.cluster}`);
    if (!equalBytes(proofIn(head), new Uint8Array(PROOF_BYTES))) {
      throw new WebdfsError('WIRE_CORRUPT', 'dialler proves too early');
    }
    if (!this.#welcome(hello)) throw new WebdfsError('WRONG_PEER', `node ${hello.node} is not expected here`);
    const answer = packHello({ ...me, lane: hello.lane });
    const text = transcript(head, answer, this.lane.exporter());
    const key = (this.options.keysFor?.(hello) ?? keys)[0]!;
    putProof(answer, proofOf('acceptor', key, text));
    this.#peer = { hello, text, key };
    this.lane.sendControl(KIND.HELLO, 0, answer);
  }

  #proof(kind: Kind, head: Uint8Array, peer: { hello: Hello; text: Uint8Array; key: Uint8Array }): void {
    if (kind !== KIND.PROOF) throw new WebdfsError('WIRE_CORRUPT', `greeting of kind ${kind}`);
    if (!sameProof(head, proofOf('dialler', peer.key, peer.text))) {
      throw new WebdfsError('ACCESS_DENIED', 'dialler does not know the cluster secret');
    }
    this.proven(peer.hello);
  }
}
