const LEAST_PIECE = 16_384;
const MOST_PIECE = 8_388_608;
/** What fills and drains the pipeline is some 5 to 10 pieces: with so many of them that is a few per cent of the whole. */
const PIECES = 200;

/**
 * The size of what is sent in one go: a unit of the wire, not the block.
 *
 * @param paceBytes  what the slowest node has to take in or give out
 * @returns bytes, between 16 KiB and 8 MiB
 */
export function pieceBytes(paceBytes: number): number {
  return Math.min(MOST_PIECE, Math.max(LEAST_PIECE, Math.floor(paceBytes / PIECES)));
}
