/** `INVALID`: a value that was handed in is wrong. `BAD_CONFIG`: this program does not know the algorithm. */
export type PlacementErrorCode = 'INVALID' | 'BAD_CONFIG';

/** Every refusal of this room; the codes are those of WebDFS, the class is its own because it depends on no other room. */
export class PlacementError extends Error {
  readonly code: PlacementErrorCode;
  /** Facts for whoever handles the code. */
  readonly details: Readonly<Record<string, string | number | boolean>>;

  constructor(
    code: PlacementErrorCode,
    message: string,
    options: { readonly details?: Readonly<Record<string, string | number | boolean>> } = {},
  ) {
    super(message);
    this.name = 'PlacementError';
    this.code = code;
    this.details = options.details ?? {};
  }
}
