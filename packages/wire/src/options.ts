import { WebdfsError } from '@webdfs/base';
import type { Limits } from './limits.ts';
import type { CallOptions } from './transport.ts';

/** Why these options are refused, if they are. */
export function checkOptions(options: CallOptions, limits: Limits): WebdfsError | undefined {
  const { deadlineMs, signal } = options;
  if (!(deadlineMs > 0 && deadlineMs <= limits.maxDeadlineMs)) {
    return new WebdfsError('INVALID', `deadline of ${deadlineMs} ms, limit ${limits.maxDeadlineMs}`);
  }
  if (signal?.aborted === true) return new WebdfsError('CANCELLED', 'the caller gave up', { cause: signal.reason });
  return undefined;
}
