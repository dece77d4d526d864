import { readFile } from 'node:fs/promises';
import { WebdfsError } from '@webdfs/base';
import type { WireOptions } from '@webdfs/webdfs';
import { type Arguments, UsageError } from './command.ts';

/** Options by which nodes prove themselves to each other with certificates instead of the token's secret. */
export const WIRE_OPTIONS = {
  'wire-ca': { type: 'string', value: 'FILE', about: "PEM of who signed all nodes' certificates: links go by them" },
  'wire-cert': {
    type: 'string',
    value: 'FILE',
    about: "PEM of the node's certificate, which names URI:webdfs://NAME/node",
  },
  'wire-key': { type: 'string', value: 'FILE', about: 'PEM of its key' },
} as const;

/** @throws UsageError if some are missing, BAD_CONFIG if one cannot be read */
export async function wireCertificates(args: Arguments): Promise<WireOptions['certificates']> {
  const names = ['wire-ca', 'wire-cert', 'wire-key'] as const;
  const given = names.filter((name) => args.text(name) !== undefined);
  if (given.length === 0) return undefined;
  if (given.length < names.length) throw new UsageError('--wire-ca, --wire-cert and --wire-key belong together');
  if (args.text('wire') !== undefined) throw new UsageError('links go by certificates, or --wire says by what');
  const [ca, cert, key] = await Promise.all(
    names.map(async (name) => {
      const path = args.text(name)!;
      try {
        return await readFile(path, 'utf8');
      } catch (error) {
        throw new WebdfsError('BAD_CONFIG', `--${name} ${path} cannot be read`, { cause: error });
      }
    }),
  );
  return { ca: ca!, cert: cert!, key: key! };
}
