import { WebdfsError } from '@webdfs/base';
import {
  type AlgorithmName,
  DOMAIN_LABELS,
  type DomainLabel,
  type NodeChoice,
  type TopologyChange,
  UNIT_WEIGHT,
} from '@webdfs/placement';
import { parseIds } from './topology-file.ts';

/** The words of a change: `drain=rack:r1`, `add=8,weight=4,rack=r13`. */
interface Words {
  readonly whole: string;
  /** What stands right behind the verb, up to the first option. */
  readonly object: string;
  readonly options: ReadonlyMap<string, string>;
}

const MAX_WEIGHT = 65_535;

function refuse(words: Words, what: string): never {
  throw new WebdfsError('INVALID', `${words.whole}: ${what}`);
}

function split(whole: string, known: readonly string[]): Words {
  const parts = whole.slice(whole.indexOf('=') + 1).split(',');
  const options = new Map<string, string>();
  const object: string[] = [];
  const words = { whole, object: '', options };
  for (const part of parts) {
    const at = part.indexOf('=');
    const name = part.slice(0, at).trim();
    if (at === -1 && options.size === 0) object.push(part.trim());
    else if (at === -1) refuse(words, `"${part}" is no option: ${known.join(', ')}`);
    else if (!known.includes(name)) refuse(words, `there is no option ${name}: ${known.join(', ')}`);
    else if (options.has(name)) refuse(words, `${name} is given twice`);
    else options.set(name, part.slice(at + 1).trim());
  }
  return { ...words, object: object.join(',') };
}

function numberOf(words: Words, name: string, text: string, most: number): number {
  const number = text === '' ? Number.NaN : Number(text);
  if (!(number >= 0 && number <= most)) refuse(words, `${name} is "${text}", not a number from 0 to ${most}`);
  return number;
}

function wholeOf(words: Words, name: string, text: string, most: number): number {
  const number = numberOf(words, name, text, most);
  return Number.isInteger(number) ? number : refuse(words, `${name} is ${text}, not a whole number`);
}

/** `7`, `1-8, 11`, `rack:r1`, `zone:z`, `machine:m`, `subcluster:3`. */
function nodesOf(words: Words): NodeChoice {
  const [, kind, value] = /^(zone|rack|machine|subcluster):(.+)$/.exec(words.object) ?? [];
  if (kind === 'subcluster') return { by: 'subcluster', id: wholeOf(words, 'subcluster', value!, 0xffff_ffff) };
  const label = DOMAIN_LABELS.find((label) => label === kind);
  if (label !== undefined) return { by: 'label', label, value: value! };
  const ids = parseIds(words.object);
  if (ids === undefined) refuse(words, `"${words.object}" names no nodes: say 1-8, or rack:NAME, or subcluster:ID`);
  return { by: 'id', ids };
}

function labelsOf(words: Words): Partial<Record<DomainLabel, string>> {
  const labels: Partial<Record<DomainLabel, string>> = {};
  for (const label of DOMAIN_LABELS) {
    const value = words.options.get(label);
    if (value === '') refuse(words, `${label} has no name`);
    if (value !== undefined) labels[label] = value;
  }
  return labels;
}

function addOf(whole: string): TopologyChange {
  const words = split(whole, ['weight', 'to', 'id', ...DOMAIN_LABELS]);
  const count = wholeOf(words, 'the number of nodes', words.object, MAX_WEIGHT);
  const given = words.options.get('weight');
  const weight = given === undefined ? undefined : numberOf(words, 'weight', given, MAX_WEIGHT) * UNIT_WEIGHT;
  const labels = labelsOf(words);
  const to = words.options.get('to');
  const id = words.options.get('id');
  if (to !== undefined) {
    if (id !== undefined) refuse(words, 'id is for a new sub-cluster, to names one that is there');
    const subcluster = wholeOf(words, 'to', to, 0xffff_ffff);
    return { type: 'add-nodes', subcluster, count, labels, ...(weight === undefined ? {} : { weight }) };
  }
  return {
    type: 'add-subcluster',
    count,
    weight: weight ?? UNIT_WEIGHT,
    labels,
    ...(id === undefined ? {} : { id: wholeOf(words, 'id', id, 0xffff_ffff) }),
  };
}

function weightOf(whole: string): TopologyChange {
  const words = split(whole, ['to', 'times']);
  const nodes = nodesOf(words);
  const to = words.options.get('to');
  const times = words.options.get('times');
  if ((to === undefined) === (times === undefined)) refuse(words, 'say either to=WEIGHT or times=FACTOR');
  if (to !== undefined) return { type: 'reweight', nodes, weight: numberOf(words, 'to', to, MAX_WEIGHT) * UNIT_WEIGHT };
  return { type: 'rescale', nodes, times: numberOf(words, 'times', times!, MAX_WEIGHT) };
}

function labelOf(whole: string): TopologyChange {
  const words = split(whole, DOMAIN_LABELS);
  const labels = labelsOf(words);
  if (Object.keys(labels).length === 0) refuse(words, 'say which: rack=NAME, zone=NAME or machine=NAME');
  return { type: 'relabel', nodes: nodesOf(words), labels };
}

function domainOf(whole: string): TopologyChange {
  const words = split(whole, []);
  if (words.object === 'none') return { type: 'domain', domain: undefined };
  const domain = DOMAIN_LABELS.find((label) => label === words.object);
  return domain === undefined ? refuse(words, `say ${DOMAIN_LABELS.join(', ')} or none`) : { type: 'domain', domain };
}

const CHANGES: Readonly<Record<string, (whole: string) => TopologyChange>> = {
  add: addOf,
  drain: (whole) => ({ type: 'drain', nodes: nodesOf(split(whole, [])) }),
  remove: (whole) => ({ type: 'remove', nodes: nodesOf(split(whole, [])) }),
  weight: weightOf,
  label: labelOf,
  domain: domainOf,
  // whether there is such an algorithm is for the topology to say
  algorithm: (whole) => ({ type: 'algorithm', algorithm: split(whole, []).object as AlgorithmName }),
  copies: (whole) => {
    const words = split(whole, []);
    return { type: 'copies', copies: wholeOf(words, 'the number of copies', words.object, 32) };
  },
};

/** What the help says of them. */
export const CHANGE_HELP = `Changes, made one after the other:
  add=N[,weight=W][,rack=R][,zone=Z][,machine=M][,id=ID]   a new sub-cluster of N nodes
  add=N,to=ID[,weight=W][,rack=R]…                         N more nodes of sub-cluster ID
  drain=NODES                                              weight 0: they give up all groups
  remove=NODES                                             they leave the map
  weight=NODES,to=W    weight=NODES,times=F                another weight
  label=NODES,rack=R[,zone=Z][,machine=M]                  they stand elsewhere
  domain=rack|zone|machine|none                            what keeps copies apart
  algorithm=NAME    copies=N
NODES: 7 or 1-8,11 or rack:R or zone:Z or machine:M or subcluster:ID`;

/** @throws INVALID, naming the word */
export function parseChange(word: string): TopologyChange {
  const verb = word.slice(0, Math.max(0, word.indexOf('=')));
  if (!Object.hasOwn(CHANGES, verb)) {
    throw new WebdfsError('INVALID', `${word} is no change: say ${Object.keys(CHANGES).join('=…, ')}=…`);
  }
  return CHANGES[verb]!(word);
}
