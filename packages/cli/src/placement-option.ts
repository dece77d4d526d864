import { type Arguments, UsageError } from './command.ts';

/** `--placement`, of a new cluster. @throws UsageError */
export function placementOf(args: Arguments): 'wrd' | 'rush-r' {
  const name = args.text('placement') ?? 'wrd';
  if (name === 'wrd' || name === 'rush-r') return name;
  throw new UsageError(`--placement is wrd or rush-r, got ${name}`);
}
