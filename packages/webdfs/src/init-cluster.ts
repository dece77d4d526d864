import type { Random } from '@webdfs/base';
import { announceFounding, type Founding, type MapStore } from '@webdfs/cluster';
import { type Credentials, newSecrets } from './credentials.ts';
import { secretName, tokenOf } from './token.ts';

export interface InitOptions extends Omit<Founding, 'secret' | 'groupBits'> {
  /** Number of groups is 2^groupBits; 12 for up to 15 nodes, 14 for more. */
  readonly groupBits?: number;
  readonly random: Random;
  /** The owner's keys; made if missing. */
  readonly credentials: Credentials | undefined;
}

const SMALL_NODES = 15;

/**
 * Says in a map store what a cluster will be, and makes the token by which nodes join it. The token is not stored there.
 *
 * @throws ALREADY_EXISTS if there is a cluster, BAD_CONFIG, UNAVAILABLE
 */
export async function initCluster(
  store: MapStore,
  options: InitOptions,
): Promise<{ readonly token: string; readonly credentials: Credentials }> {
  const { random, credentials, groupBits = options.nodes <= SMALL_NODES ? 12 : 14, ...founding } = options;
  const secrets = newSecrets(random, credentials);
  await announceFounding(store, { ...founding, groupBits, secret: secretName(secrets) });
  const { accessKeyId, secretAccessKey } = secrets;
  return { token: tokenOf(secrets), credentials: { accessKeyId, secretAccessKey } };
}
