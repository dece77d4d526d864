import { WebdfsError } from '@webdfs/base';
import { PlacementError } from '@webdfs/placement';

/**
 * Runs a step of placement, which stands alone and has errors of its own with some of our codes: they become ours.
 *
 * @throws WebdfsError
 */
export function withOurErrors<Result>(step: () => Result): Result {
  try {
    return step();
  } catch (error) {
    if (!(error instanceof PlacementError)) throw error;
    throw new WebdfsError(error.code, error.message, { details: error.details, cause: error });
  }
}
