import { type Clock, codeOf, type Random, sleep, WebdfsError } from '@webdfs/base';
import {
  isSettled,
  lookAtHistory,
  lookAtTopology,
  type RescaleSummary,
  type S3Client,
  tellTopology,
  type TopologyReport,
  TopologyWatch,
  verifyObjects,
} from '@webdfs/webdfs/remote';
import { idleShareSince, processorTimes } from '../processor-times.ts';
import { Foreground, type ForegroundFigures } from './foreground.ts';
import { storeLoad, type StoredLoad } from './stored-load.ts';
import { type Validation, validate } from './validation.ts';

/** What is to be done to a running cluster, and beside what. */
export interface ClusterRunOptions {
  readonly client: S3Client;
  /** In the words of `webdfs plan`, given the cluster as it is. */
  readonly changesOf: (report: TopologyReport) => string;
  /** What the history is to call it. */
  readonly command: string;
  /** Mixed objects stored before; 0: what is there has to do. */
  readonly loadBytes: number;
  /** Most that each node may take in, and send, for this: bytes per second; undefined: as it is set. */
  readonly capBytes: number | undefined;
  /** Clients that read and write meanwhile. */
  readonly clients: number;
  readonly pauseMs: number;
  readonly seed: number;
  readonly clock: Clock;
  readonly random: Random;
  readonly signal: AbortSignal;
  readonly onProgress: (what: string) => void;
}

/** One look at a change that goes on. */
export interface Sample {
  readonly seconds: number;
  readonly bytesLeft: number;
  readonly groupsLeft: number;
  readonly bytesPerSecond: number;
  /** As it was told. */
  readonly secondsLeft: number | undefined;
  readonly pace: string;
}

export interface ClusterFigures {
  readonly before: TopologyReport;
  readonly after: TopologyReport;
  readonly load: StoredLoad;
  readonly summary: RescaleSummary;
  readonly samples: readonly Sample[];
  readonly quiet: ForegroundFigures;
  readonly busy: ForegroundFigures;
  readonly idleShare: number;
  readonly found: { readonly before: Validation; readonly after: Validation };
  /** Objects and copies read and verified afterwards, those that were not good, and the first of these. */
  readonly proof: {
    readonly objects: number;
    readonly copies: number;
    readonly bad: number;
    readonly problem: string | undefined;
  };
}

const BUCKET = 'webdfs-bench-rescale';
const LOOK_MS = 500;
const QUIET_MS = 8_000;
/** The account is closed a moment after the last group has moved. */
const ACCOUNT_TRIES = 40;
const OBJECTS_AT_ONCE = 4;
/** Looks that are kept; the bench gives up after so many. */
const MAX_SAMPLES = 14_400;

async function makeBucket(client: S3Client): Promise<void> {
  try {
    await client.call({ method: 'PUT', bucket: BUCKET });
  } catch (error) {
    if (codeOf(error) !== 'ALREADY_EXISTS') throw error;
  }
}

async function setCap({ client, capBytes }: ClusterRunOptions): Promise<void> {
  if (capBytes === undefined) return;
  const { revision } = await lookAtTopology(client);
  await tellTopology(client, { action: 'limit', revision: String(revision), rate: String(capBytes) });
}

/** Puts back what was set before. */
async function restoreCap({ client, capBytes }: ClusterRunOptions, before: TopologyReport): Promise<void> {
  if (capBytes === undefined) return;
  const { revision } = await lookAtTopology(client);
  const rate = String(before.moveLimits?.bytesPerSecond ?? 'none');
  await tellTopology(client, { action: 'limit', revision: String(revision), rate });
}

/** Waits for the change to settle, and keeps what it said of itself meanwhile. */
async function follow({ client, clock, signal, onProgress }: ClusterRunOptions): Promise<Sample[]> {
  const samples: Sample[] = [];
  const watch = new TopologyWatch(client, clock);
  const began = clock.monotonic();
  while (samples.length < MAX_SAMPLES) {
    await sleep(clock, LOOK_MS, signal);
    const report = await watch.look(signal);
    if (report === undefined) continue;
    if (isSettled(report)) return samples;
    const { moving } = report;
    if (moving === undefined) continue;
    const { bytesLeft, groupsLeft, bytesPerSecond, secondsLeft, pace } = moving;
    samples.push({
      seconds: (clock.monotonic() - began) / 1_000,
      bytesLeft,
      groupsLeft,
      bytesPerSecond,
      secondsLeft,
      pace: pace === undefined ? '' : `${pace.resource} of node ${pace.node}`,
    });
    onProgress(`rescaling, ${groupsLeft} groups left`);
  }
  throw new WebdfsError('TIMEOUT', `the change was not done after ${MAX_SAMPLES} looks`);
}

async function summaryOf({ client, clock, signal }: ClusterRunOptions, known: number): Promise<RescaleSummary> {
  for (let tries = 0; tries < ACCOUNT_TRIES; tries++) {
    const [last] = (await lookAtHistory(client)).rescales;
    if (last !== undefined && last.number > known && last.outcome !== 'under way') return last;
    await sleep(clock, LOOK_MS, signal);
  }
  throw new WebdfsError('TIMEOUT', 'the history does not tell what became of the change');
}

/** The change itself, under clients. */
async function execute(
  options: ClusterRunOptions,
  foreground: Foreground,
): Promise<Pick<ClusterFigures, 'samples' | 'summary' | 'quiet' | 'busy' | 'idleShare'>> {
  const { client, clock, signal, command, onProgress } = options;
  const stop = new AbortController();
  const clients = foreground.run(AbortSignal.any([stop.signal, signal]));
  try {
    onProgress('clients alone');
    if (options.clients > 0) await sleep(clock, QUIET_MS, signal);
    const quiet = foreground.take();
    const report = await lookAtTopology(client);
    const [last] = (await lookAtHistory(client)).rescales;
    const processors = processorTimes();
    const changes = options.changesOf(report);
    await tellTopology(client, { action: 'change', revision: String(report.revision), changes, command });
    const samples = await follow(options);
    const idleShare = idleShareSince(processors);
    const busy = foreground.take();
    return { samples, quiet, busy, idleShare, summary: await summaryOf(options, last?.number ?? 0) };
  } finally {
    stop.abort();
    await clients;
  }
}

/**
 * Has a running cluster change its shape, and measures that as its own history and its clients see it: stores objects, looks
 * at the placement before and after, and proves at the end that every object and every copy is good.
 *
 * @throws CONFLICT if a change is under way already; what the cluster answers; the signal's reason
 */
export async function runCluster(options: ClusterRunOptions): Promise<ClusterFigures> {
  const { client, clock, random, signal, onProgress, seed, loadBytes, clients, pauseMs } = options;
  const present = await lookAtTopology(client);
  if (!isSettled(present)) {
    throw new WebdfsError('CONFLICT', 'a change is under way already: "webdfs cluster rescale watch" follows it');
  }
  await makeBucket(client);
  const progress = { clock, signal, onProgress };
  const load =
    loadBytes === 0
      ? { objects: 0, bytes: 0, seconds: 0 }
      : await storeLoad({ client, bucket: BUCKET, bytes: loadBytes, seed, ...progress });
  const before = await validate(client);
  await setCap(options);
  const foreground = new Foreground({ client, bucket: BUCKET, clients, pauseMs, clock, random });
  try {
    const measured = await execute(options, foreground);
    const after = await validate(client);
    onProgress('verifying every object and every copy');
    const proof = await verifyObjects({ client, clock, bucket: BUCKET, atOnce: OBJECTS_AT_ONCE, signal });
    const [first] = proof.problems;
    return {
      ...measured,
      before: present,
      after: await lookAtTopology(client),
      load,
      found: { before, after },
      proof: {
        objects: proof.objects,
        copies: proof.copies,
        bad: proof.bad + proof.notCounted,
        problem: first === undefined ? undefined : `${first.key ?? first.bucket}: ${first.what}`,
      },
    };
  } finally {
    await restoreCap(options, present);
  }
}
