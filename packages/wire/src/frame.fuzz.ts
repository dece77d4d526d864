/**
 * Foreign bytes against everything that reads them, for as long as wanted; prints its seed first.
 *
 * node --conditions=webdfs:source packages/wire/src/frame.fuzz.ts [seconds] [seed]
 */
import { concat, EMPTY, messageOf, SeededRandom, systemClock, SystemRandom, toHex, WebdfsError } from '@webdfs/base';
import { FrameReader, KIND, type Kind, packFrame } from './frame.ts';
import { unpackHello } from './hello.ts';
import { readCallHead, readCallMessage, readReply, unpackCancel, unpackError } from './message.ts';

/** Reads heads as a session would. */
function readHead(kind: Kind, head: Uint8Array, attached: Uint8Array): void {
  if (kind === KIND.CALL || kind === KIND.OPEN || kind === KIND.POST) {
    readCallHead(head);
    readCallMessage(head, attached);
  } else if (kind === KIND.REPLY) readReply(head, attached);
  else if (kind === KIND.FAIL) unpackError(head);
  else if (kind === KIND.CANCEL) unpackCancel(head);
  else if (kind === KIND.HELLO) unpackHello(head);
}

/** A few frames, valid but for some changed bytes, in chunks cut anywhere. */
function chunksOf(random: SeededRandom): Uint8Array[] {
  const kinds = Object.values(KIND);
  const frames = Array.from({ length: 1 + random.below(4) }, () => {
    const kind = kinds[random.below(kinds.length)]!;
    const head = kind === KIND.DATA ? EMPTY : random.bytes(random.below(120));
    return packFrame(kind, random.uint32(), head, random.bytes(random.below(80)), random.below(8) === 0 ? 1 : 0);
  });
  const bytes = concat([...frames, random.bytes(random.below(40))]);
  for (let damage = random.below(3); damage > 0; damage--) bytes[random.below(bytes.length)] = random.below(256);
  const chunks: Uint8Array[] = [];
  for (let at = 0; at < bytes.length;) {
    const count = 1 + random.below(bytes.length);
    chunks.push(bytes.slice(at, at + count));
    at += count;
  }
  return chunks;
}

function round(random: SeededRandom): void {
  const reader = new FrameReader({
    frame: (kind, _stream, head, attached) => readHead(kind, head, attached),
    data: () => undefined,
  });
  if (random.below(4) > 0) reader.trust();
  const chunks = chunksOf(random);
  try {
    for (const chunk of chunks) reader.push(chunk);
  } catch (error) {
    if (error instanceof WebdfsError && error.code === 'WIRE_CORRUPT') return;
    throw new Error(`chunks ${chunks.map(toHex).join(' | ')}: ${messageOf(error)}`, { cause: error });
  }
}

const seconds = Number(process.argv[2] ?? 10);
const seed = Number(process.argv[3] ?? Math.floor(new SystemRandom().fraction() * 2 ** 32));
console.log(`frame.fuzz.ts ${seconds} ${seed}`);
const random = new SeededRandom(seed);
const until = systemClock.monotonic() + seconds * 1000;
let rounds = 0;
for (; systemClock.monotonic() < until; rounds++) round(random);
console.log(`${rounds} rounds`);
