import { assert, type Clock, type Log, messageOf, type NodeId, type Random, toHex, WebdfsError } from '@webdfs/base';
import { Accepting, Dialling, type GreetingOptions } from './greeting.ts';
import {
  BOOT_BYTES,
  type Hello,
  LANE,
  type Lane as LaneNumber,
  linkKey,
  NEWEST_VERSION,
  NONCE_BYTES,
  OLDEST_VERSION,
} from './hello.ts';
import { Lane, type LaneUser } from './lane.ts';
import type { Limits } from './limits.ts';
import { PeerLink } from './link.ts';
import { GOAWAY_REASON } from './message.ts';
import { PackPool } from './packer.ts';
import type { Network, Pipe, PipeUser } from './pipe.ts';
import { Redial } from './redial.ts';
import { SelfLink } from './self-link.ts';
import { Session } from './session.ts';
import { SlabPool } from './slabs.ts';
import type { Role } from './stream-host.ts';
import type { Handlers, Link, Transport } from './transport.ts';

export interface NodeTransportOptions {
  readonly self: NodeId;
  /** 32 hex digits. */
  readonly cluster: string;
  /** The present cluster secret first; later ones are accepted from those whom this node dials. */
  readonly secrets: readonly Uint8Array[];
  readonly handlers: Handlers;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly limits: Limits;
  readonly network: Network;
  /** Overwrites released pieces; for tests. */
  readonly poison?: boolean;
}

interface Peer {
  readonly link: PeerLink;
  address: string | undefined;
  readonly messages: Redial;
  readonly bodies: Redial;
  /** Lanes that this node is dialling. */
  readonly dialling: Set<Lane>;
}

/** All links of one node over one network; the same for every kind of network. */
export class NodeTransport implements Transport {
  readonly self: NodeId;
  readonly #options: NodeTransportOptions;
  readonly #boot: string;
  #secrets: readonly Uint8Array[];
  #keys: readonly Uint8Array[];
  /** Of nodes that were proved a key they did not know: which one is next. */
  readonly #turns = new Map<NodeId, number>();
  readonly #packs = new PackPool();
  readonly #slabs: SlabPool;
  readonly #peers = new Map<NodeId, Peer>();
  readonly #selfLink: SelfLink;
  readonly #strangers = new Set<Lane>();
  readonly #listeners: ((node: NodeId, alive: boolean) => void)[] = [];
  #closed = false;

  constructor(options: NodeTransportOptions) {
    this.self = options.self;
    this.#options = options;
    this.#boot = toHex(options.random.bytes(BOOT_BYTES));
    this.#secrets = options.secrets;
    this.#keys = options.secrets.map((secret) => linkKey(secret, options.cluster));
    const { slabs, copiedBytes } = options.limits;
    this.#slabs = new SlabPool({ slabs, copiedBytes, poison: options.poison ?? false });
    this.#selfLink = new SelfLink(options.self, options);
    options.network.serve((pipe) => this.#accept(pipe));
  }

  get address(): string {
    return this.#options.network.address;
  }

  get secrets(): readonly Uint8Array[] {
    return this.#secrets;
  }

  /** The secrets from now on, the present one first. Links that stand go on. */
  setSecrets(secrets: readonly Uint8Array[]): void {
    assert(secrets.length > 0, 'a node has a secret');
    this.#secrets = secrets;
    this.#keys = secrets.map((secret) => linkKey(secret, this.#options.cluster));
    this.#turns.clear();
  }

  /** The keys for one who dials: another one first each time, until one is known to it. */
  #keysFor(node: NodeId): readonly Uint8Array[] {
    const turn = (this.#turns.get(node) ?? 0) % this.#keys.length;
    this.#turns.set(node, turn + 1);
    return [...this.#keys.slice(turn), ...this.#keys.slice(0, turn)];
  }

  /** Pieces of bodies lent to handlers and callers and not yet released. */
  get lent(): number {
    return this.#slabs.lent;
  }

  setPeers(addresses: ReadonlyMap<NodeId, string>): void {
    if (this.#closed) return;
    for (const [node, peer] of this.#peers) {
      if (!addresses.has(node)) this.#move(peer, undefined);
    }
    for (const [node, address] of addresses) {
      if (node === this.self) continue;
      const peer = this.#peer(node);
      if (peer.address !== address) this.#move(peer, address);
    }
  }

  link(node: NodeId): Link {
    return node === this.self ? this.#selfLink : this.#peer(node).link;
  }

  alive(node: NodeId): boolean {
    return node === this.self || (this.#peers.get(node)?.link.alive ?? false);
  }

  onChange(listener: (node: NodeId, alive: boolean) => void): void {
    this.#listeners.push(listener);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    const closed = this.#options.network.close();
    for (const peer of this.#peers.values()) {
      peer.address = undefined;
      this.#stop(peer);
      peer.link.goAway(GOAWAY_REASON.CLOSING);
    }
    for (const lane of this.#strangers) lane.close('closed here');
    this.#selfLink.close();
    await closed;
  }

  #peer(node: NodeId): Peer {
    const known = this.#peers.get(node);
    if (known !== undefined) return known;
    const { clock, random, limits, log } = this.#options;
    const peer: Peer = {
      link: new PeerLink({
        peer: node,
        clock,
        limits,
        log,
        onChange: (alive) => this.#changed(peer, alive),
      }),
      address: undefined,
      messages: new Redial({ clock, random, limits, attempt: () => this.#dial(peer, LANE.MESSAGES) }),
      bodies: new Redial({ clock, random, limits, attempt: () => this.#dial(peer, LANE.BODIES) }),
      dialling: new Set(),
    };
    this.#peers.set(node, peer);
    return peer;
  }

  /** A peer is somewhere else now, or nowhere. */
  #move(peer: Peer, address: string | undefined): void {
    peer.address = undefined;
    this.#stop(peer);
    peer.link.lose(address === undefined ? 'left out of the map' : 'moved to another address');
    peer.address = address;
    if (address !== undefined && this.self < peer.link.peer) peer.messages.start();
  }

  #stop(peer: Peer): void {
    peer.messages.stop();
    peer.bodies.stop();
    for (const lane of peer.dialling) lane.close('closed here');
  }

  #changed(peer: Peer, alive: boolean): void {
    if (alive) peer.bodies.start();
    else peer.bodies.stop();
    for (const listener of this.#listeners) listener(peer.link.peer, alive);
  }

  #hello(lane: LaneNumber): Hello {
    const { cluster, limits, random } = this.#options;
    return {
      newest: NEWEST_VERSION,
      oldest: OLDEST_VERSION,
      lane,
      window: limits.window,
      node: this.self,
      boot: this.#boot,
      cluster,
      nonce: random.bytes(NONCE_BYTES),
    };
  }

  #lane(user: LaneUser, receivesBodies: boolean): Lane {
    const { clock, limits } = this.#options;
    const base = { clock, limits, packs: this.#packs };
    return new Lane(user, receivesBodies ? { ...base, slabs: this.#slabs } : base);
  }

  // ---- lanes dialled here ----

  #dial(peer: Peer, kind: LaneNumber): void {
    const { address, link } = peer;
    const messages = kind === LANE.MESSAGES;
    if (address === undefined || (!messages && !link.alive)) return;
    const { clock, limits, network, log } = this.#options;
    const redial = messages ? peer.messages : peer.bodies;
    const over = (): void => {
      timer.cancel();
      peer.dialling.delete(lane);
    };
    const options: GreetingOptions = {
      me: this.#hello(kind),
      keys: this.#keys,
      onProven: (hello, version) => {
        over();
        if (version === undefined) {
          throw new WebdfsError('NEWER_FORMAT', `node ${link.peer} speaks versions ${hello.oldest}–${hello.newest}`);
        }
        const role = messages ? 'messages' : 'reader';
        const session = this.#session(lane, role, hello, () => this.#again(peer, redial));
        return { user: session, start: () => this.#up(link, role, session, hello, redial) };
      },
      onFailed: (cause) => {
        over();
        log.debug('connection failed', { peer: link.peer, address, cause });
        this.#again(peer, redial);
      },
    };
    const greeting = new Dialling(link.peer, options);
    const lane = this.#lane(greeting, !messages);
    const timer = clock.after(limits.handshakeMs, () => lane.close('greeting took too long'));
    peer.dialling.add(lane);
    try {
      lane.attach(network.dial(address, lane));
      greeting.greet(lane);
    } catch (error) {
      lane.close(messageOf(error));
    }
  }

  /** A dialled lane is gone: dial it again, if it is still wanted. */
  #again(peer: Peer, redial: Redial): void {
    if (peer.address === undefined) return;
    if (redial === peer.messages || peer.link.alive) redial.down();
  }

  // ---- lanes accepted here ----

  #accept(pipe: Pipe): PipeUser {
    const { clock, limits, log } = this.#options;
    const over = (): void => {
      timer.cancel();
      this.#strangers.delete(lane);
    };
    const options: GreetingOptions = {
      me: this.#hello(LANE.MESSAGES),
      keys: this.#keys,
      keysFor: (hello) => this.#keysFor(hello.node),
      onProven: (hello, version) => {
        over();
        this.#turns.delete(hello.node);
        const role = hello.lane === LANE.MESSAGES ? 'messages' : 'writer';
        const session = this.#session(lane, role, hello, () => undefined);
        const start = (): void => {
          const peer = this.#peers.get(hello.node);
          if (version === undefined) session.goAway(GOAWAY_REASON.VERSION);
          else if (peer === undefined || this.#closed) session.close('not a peer any more');
          else this.#up(peer.link, role, session, hello);
        };
        return { user: session, start };
      },
      onFailed: (cause) => {
        over();
        log.debug('stranger refused', { cause });
      },
    };
    const greeting = new Accepting((hello) => this.#welcome(hello), options);
    const lane = this.#lane(greeting, false);
    const timer = clock.after(limits.handshakeMs, () => lane.close('greeting took too long'));
    lane.attach(pipe);
    greeting.greet(lane);
    if (this.#closed || this.#strangers.size >= limits.maxStrangers) lane.close('too many strangers');
    else this.#strangers.add(lane);
    return lane;
  }

  #welcome(hello: Hello): boolean {
    if (this.#peers.get(hello.node)?.address === undefined) return false;
    return hello.lane === LANE.BODIES || hello.node < this.self;
  }

  // ---- both ----

  #session(lane: Lane, role: Role, hello: Hello, onGone: () => void): Session {
    const { handlers, clock, limits, log } = this.#options;
    const session: Session = new Session(lane, {
      role,
      dialled: role === 'reader' || (role === 'messages' && this.self < hello.node),
      peer: hello.node,
      peerWindow: hello.window,
      handlers,
      clock,
      limits,
      log,
      onClosed: (cause) => {
        const link = this.#peers.get(hello.node)?.link;
        if (role === 'messages') link?.messagesDown(session, cause);
        else link?.bodiesDown(role, session);
        onGone();
      },
    });
    return session;
  }

  #up(link: PeerLink, role: Role, session: Session, hello: Hello, redial?: Redial): void {
    redial?.up();
    if (role === 'messages') link.messagesUp(session, hello.boot);
    else link.bodiesUp(role, session, hello.boot);
  }
}
