import { WebdfsError } from '@webdfs/base';
import type { Layout } from '@webdfs/replica';
import type { Range } from './object-store.ts';

/** Bytes [offset, offset + length) of an object. */
export interface Extent {
  readonly offset: number;
  readonly length: number;
}

function unsatisfiable(what: string, size: number): WebdfsError {
  return new WebdfsError('RANGE_NOT_SATISFIABLE', `${what} of an object of ${size} bytes`, { details: { size } });
}

function partExtent(number: number, size: number, layout: Layout): Extent {
  if (layout.type !== 'parts') {
    if (number === 1) return { offset: 0, length: size };
    throw unsatisfiable(`part ${number}`, size);
  }
  let offset = 0;
  for (const part of layout.parts) {
    if (part.number === number) return { offset, length: part.size };
    offset += part.size;
  }
  throw unsatisfiable(`part ${number}`, size);
}

/** The numbers that a client chose. */
function numbersOf(range: Range): number[] {
  switch (range.type) {
    case 'from':
      return range.last === undefined ? [range.first] : [range.first, range.last];
    case 'suffix':
      return [range.count];
    case 'part':
      return [range.number];
  }
}

/**
 * What a range asks for of an object of `size` bytes; everything without one.
 *
 * @throws RANGE_NOT_SATISFIABLE with `details.size` if not one of its bytes exists, or the part does not; INVALID for nonsense
 */
export function resolveRange(range: Range | undefined, size: number, layout: Layout): Extent {
  if (range === undefined) return { offset: 0, length: size };
  if (numbersOf(range).some((number) => !Number.isSafeInteger(number) || number < 0)) {
    throw new WebdfsError('INVALID', 'a range is made of whole numbers from 0', { details: { what: 'range' } });
  }
  if (range.type === 'part') return partExtent(range.number, size, layout);
  if (range.type === 'suffix') {
    if (range.count === 0 || size === 0) throw unsatisfiable(`the last ${range.count} bytes`, size);
    const length = Math.min(range.count, size);
    return { offset: size - length, length };
  }
  const last = Math.min(range.last ?? size - 1, size - 1);
  if (range.first >= size || last < range.first) throw unsatisfiable(`bytes from ${range.first}`, size);
  return { offset: range.first, length: last - range.first + 1 };
}
