import { codeOf, fromUtf8, NodeDisk, readWhole, systemClock, WebdfsError } from '@webdfs/base';
import { type Credentials, credentialsFrom, readSecrets, S3Client } from '@webdfs/webdfs/remote';
import type { Arguments } from './command.ts';
import type { Terminal } from './terminal.ts';

/** Options that every command takes which speaks to a running store. */
export const REMOTE_OPTIONS = {
  endpoint: {
    type: 'string',
    value: 'URL',
    about: 'the store (default: WEBDFS_ENDPOINT, else what the data folder says)',
  },
  data: {
    type: 'string',
    value: 'FOLDER',
    about: 'data folder of "webdfs up", which knows endpoint and keys (default: ./webdfs-data)',
  },
} as const;

export const DEFAULT_DATA = './webdfs-data';

/**
 * Where the store is and who we are: from `--endpoint` and the environment, else from the data folder that
 * `webdfs up` keeps (`--data`, by default `./webdfs-data`).
 *
 * @throws WebdfsError BAD_CONFIG, saying what to set
 */
export async function remoteOf(
  args: Arguments,
  terminal: Terminal,
): Promise<{ endpoint: string; credentials: Credentials }> {
  const { environment } = terminal;
  const folder = args.text('data') ?? DEFAULT_DATA;
  const disk = new NodeDisk();
  const given = args.text('endpoint') ?? environment['WEBDFS_ENDPOINT'];
  const endpoint = given ?? (await keptEndpoint(disk, folder));
  const credentials = credentialsFrom(environment) ?? (await keptCredentials(disk, folder));
  if (endpoint !== undefined && credentials === undefined) {
    throw new WebdfsError(
      'BAD_CONFIG',
      `no keys for ${endpoint}: set WEBDFS_ACCESS_KEY_ID and WEBDFS_SECRET_ACCESS_KEY, or name its folder with --data`,
    );
  }
  if (endpoint === undefined || credentials === undefined) {
    throw new WebdfsError(
      'BAD_CONFIG',
      `no store known: start one with "webdfs up", or name its folder with --data, or set WEBDFS_ENDPOINT, ` +
        'WEBDFS_ACCESS_KEY_ID and WEBDFS_SECRET_ACCESS_KEY',
    );
  }
  return { endpoint, credentials };
}

export async function connect(args: Arguments, terminal: Terminal): Promise<S3Client> {
  return new S3Client({ ...(await remoteOf(args, terminal)), clock: systemClock });
}

async function keptEndpoint(disk: NodeDisk, folder: string): Promise<string | undefined> {
  try {
    return fromUtf8(await readWhole(disk, `${folder}/endpoint`)).trim();
  } catch (error) {
    if (codeOf(error) === 'NOT_FOUND') return undefined;
    throw error;
  }
}

async function keptCredentials(disk: NodeDisk, folder: string): Promise<Credentials | undefined> {
  try {
    return await readSecrets(disk, folder);
  } catch (error) {
    if (codeOf(error) === 'NOT_FOUND') return undefined;
    throw error;
  }
}
