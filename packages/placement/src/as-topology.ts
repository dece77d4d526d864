import { PlacementError } from './placement-error.ts';
import type { Demands } from './refusals.ts';
import type { Topology } from './topology.ts';
import { validateTopology } from './validate.ts';

/** Sub-clusters, nodes in one of them, and pins are each at most so many: what a foreign text may make us look at. */
const MAX_ENTRIES = 1 << 20;
/** A message names so many errors at most. */
const MAX_NAMED = 8;

type Fields = Readonly<Record<string, unknown>>;

function refuse(entry: string, what: string): never {
  throw new PlacementError('INVALID', `the topology: ${entry} ${what}`, { details: { entry } });
}

function fieldsOf(value: unknown, entry: string): Fields {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) refuse(entry, 'is not an object');
  return value as Fields;
}

function listOf(value: unknown, entry: string): readonly unknown[] {
  if (!Array.isArray(value)) refuse(entry, 'is not a list');
  if (value.length > MAX_ENTRIES) refuse(entry, `has ${value.length} entries, allowed are ${MAX_ENTRIES}`);
  return value as readonly unknown[];
}

function checkNumbers(fields: Fields, entry: string, names: readonly string[]): void {
  for (const name of names) {
    const value = fields[name];
    if (typeof value !== 'number') refuse(`${entry}${name}`, `is ${JSON.stringify(value)}, not a number`);
  }
}

function checkShape(value: unknown): void {
  const topology = fieldsOf(value, 'as a whole');
  for (const name of ['algorithm', 'domain']) {
    if (typeof (topology[name] ?? '') !== 'string') refuse(name, 'is not a name');
  }
  checkNumbers(topology, '', ['version', 'seed', 'copies']);
  for (const [i, entry] of listOf(topology['subclusters'], 'subclusters').entries()) {
    const subcluster = fieldsOf(entry, `subclusters[${i}]`);
    checkNumbers(subcluster, `subclusters[${i}].`, ['id']);
    for (const [n, entry] of listOf(subcluster['nodes'], `subclusters[${i}].nodes`).entries()) {
      const at = `subclusters[${i}].nodes[${n}]`;
      const node = fieldsOf(entry, at);
      checkNumbers(node, `${at}.`, ['id', 'weight']);
      fieldsOf(node['labels'], `${at}.labels`);
    }
  }
  if (topology['factors'] !== undefined) fieldsOf(topology['factors'], 'factors');
  if (topology['table'] !== undefined)
    checkNumbers(fieldsOf(topology['table'], 'table'), 'table.', ['groupBits', 'copies']);
  for (const [i, pin] of listOf(topology['pins'] ?? [], 'pins').entries()) {
    checkNumbers(fieldsOf(pin, `pins[${i}]`), `pins[${i}].`, ['group', 'from', 'to']);
  }
}

/**
 * A topology out of parsed JSON that came from outside, checked in full (see `validateTopology`; warnings are not told).
 *
 * @throws PlacementError INVALID; the message names the entries that are wrong, up to eight of them
 */
export function asTopology(value: unknown, demands: Demands = {}): Topology {
  checkShape(value);
  const topology = value as Topology;
  const { errors } = validateTopology(topology, demands);
  if (errors.length === 0) return topology;
  const named = errors.slice(0, MAX_NAMED).join('; ');
  const more = errors.length > MAX_NAMED ? `; and ${errors.length - MAX_NAMED} more` : '';
  throw new PlacementError('INVALID', `the topology: ${named}${more}`, { details: { errors: errors.length } });
}
