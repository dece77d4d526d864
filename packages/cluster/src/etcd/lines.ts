import { fromUtf8, WebdfsError } from '@webdfs/base';
import { type Fields, isFields } from './answers.ts';

/** @throws WIRE_CORRUPT if it is no object in JSON */
export function parseAnswer(bytes: Uint8Array): Fields {
  let value: unknown;
  try {
    value = JSON.parse(fromUtf8(bytes));
  } catch (error) {
    throw new WebdfsError('WIRE_CORRUPT', 'etcd: an answer is not JSON', { cause: error });
  }
  if (!isFields(value)) throw new WebdfsError('WIRE_CORRUPT', 'etcd: an answer is not an object');
  return value;
}

/** Cuts a stream into lines, an object in JSON each. Holds one unfinished line of at most `most` bytes. */
export async function* linesOf(chunks: AsyncIterable<Uint8Array>, most: number): AsyncGenerator<Fields> {
  let parts: Uint8Array[] = [];
  let held = 0;
  for await (const chunk of chunks) {
    let start = 0;
    for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10, start)) {
      const line = Buffer.concat([...parts, chunk.subarray(start, end)]);
      parts = [];
      held = 0;
      start = end + 1;
      if (line.length > 0) yield parseAnswer(line);
    }
    if (start === chunk.length) continue;
    parts.push(chunk.subarray(start));
    held += chunk.length - start;
    if (held > most) throw new WebdfsError('TOO_LARGE', `etcd: a line of more than ${most} bytes`);
  }
  if (held > 0) yield parseAnswer(Buffer.concat(parts));
}
