import { hostname } from 'node:os';
import { asNodeId, type NodeId } from '@webdfs/base';
import type { Joining, WireOptions } from '@webdfs/webdfs';
import { type Arguments, UsageError } from './command.ts';
import { ETCD_OPTIONS } from './etcd-options.ts';
import { WIRE_OPTIONS } from './wire-certificates.ts';

/** The options of a node that joins a cluster on several machines; its process is given the same words. */
export const JOIN_OPTIONS = {
  ...ETCD_OPTIONS,
  ...WIRE_OPTIONS,
  data: { type: 'string', value: 'FOLDER', about: "the node's folder, one a disk" },
  listen: { type: 'string', value: 'HOST:PORT', about: 'where clients reach it' },
  peers: { type: 'string', value: 'HOST:PORT', about: 'where the other nodes reach it (default: the port after that)' },
  advertise: { type: 'string', value: 'HOST', about: 'the host that others are told, if it listens on 0.0.0.0 or ::' },
  wire: { type: 'string', value: 'KIND', about: 'tls or plain between nodes (default: tls, on loopback plain)' },
  fence: {
    type: 'string',
    value: 'WHEN',
    about: 'always or trust: whether lost nodes are replaced 2.5 s later (default: where etcd may end leases early)',
  },
  rack: { type: 'string', value: 'NAME', about: 'its rack' },
  zone: { type: 'string', value: 'NAME', about: 'its zone' },
  machine: { type: 'string', value: 'NAME', about: 'its machine (default: the host name)' },
  weight: { type: 'string', value: 'W', about: 'its share beside the others, such as terabytes (default: 1)' },
  id: { type: 'string', value: 'N', about: 'take the place of node N with a new, empty folder' },
} as const;

export interface JoinSettings {
  readonly host: string;
  readonly port: number;
  readonly advertise: string | undefined;
  readonly wire: WireOptions;
  readonly joining: Joining;
  readonly node: NodeId | undefined;
  /** Undefined: as etcd's version asks for. */
  readonly fence: 'always' | 'trust' | undefined;
}

const LOOPBACK = /^(127\.\d+\.\d+\.\d+|::1|localhost)$/;
const ANY = /^(0\.0\.0\.0|::)$/;
const LABEL = /^[\w.-]{1,63}$/;

/** @throws UsageError if it is not `HOST:PORT` */
function addressIn(args: Arguments, name: string, least: number): { host: string; port: number } | undefined {
  const text = args.text(name);
  if (text === undefined) return undefined;
  const match = /^(?:\[([0-9a-fA-F:]+)\]|([^:[\]]+)):(\d{1,5})$/.exec(text);
  const port = Number(match?.[3]);
  if (match === null || port < least || port > 65_535) throw new UsageError(`--${name} takes HOST:PORT, got ${text}`);
  return { host: match[1] ?? match[2]!, port };
}

function labelsIn(args: Arguments): Record<string, string> {
  const labels: Record<string, string> = {};
  for (const name of ['machine', 'rack', 'zone'] as const) {
    const value = args.text(name) ?? (name === 'machine' ? hostname() : undefined);
    if (value === undefined) continue;
    if (!LABEL.test(value)) throw new UsageError(`--${name} takes 1 to 63 letters, digits and . _ -, got ${value}`);
    labels[name] = value;
  }
  return labels;
}

function weightIn(args: Arguments): number {
  const text = args.text('weight') ?? '1';
  const weight = Number(text);
  if (text.trim() === '' || !(weight > 0 && weight <= 65_535)) {
    throw new UsageError(`--weight takes a number above 0, at most 65535, got ${text}`);
  }
  return weight;
}

function wireOf(args: Arguments, door: { host: string; port: number }): WireOptions {
  const { host, port } = addressIn(args, 'peers', 0) ?? { host: door.host, port: door.port + 1 };
  const kind = args.text('wire') ?? (LOOPBACK.test(host) ? 'plain' : 'tls');
  if (kind !== 'tls' && kind !== 'plain') throw new UsageError(`--wire is tls or plain, got ${kind}`);
  const advertise = args.text('advertise');
  if (ANY.test(host) && advertise === undefined) {
    throw new UsageError(`the others cannot reach ${host}: say with --advertise what they are to dial`);
  }
  return { host, port, tls: kind === 'tls', ...(advertise === undefined ? {} : { advertise }) };
}

/** @throws UsageError */
export function joinSettings(args: Arguments): JoinSettings {
  const door = addressIn(args, 'listen', 1);
  if (door === undefined) throw new UsageError('say where clients reach the node with --listen HOST:PORT');
  const id = args.text('id');
  const fence = args.text('fence');
  if (fence !== undefined && fence !== 'always' && fence !== 'trust') {
    throw new UsageError(`--fence is always or trust, got ${fence}`);
  }
  return {
    fence,
    ...door,
    advertise: args.text('advertise'),
    wire: wireOf(args, door),
    joining: { labels: labelsIn(args), weight: weightIn(args) },
    node: id === undefined ? undefined : asNodeId(args.count('id', 0, { least: 1, most: 65_535 })),
  };
}
