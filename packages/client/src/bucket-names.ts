import { WebdfsError } from '@webdfs/base';

const RESERVED_STARTS = ['xn--', 'sthree-', 'amzn-s3-demo-'];
const RESERVED_ENDS = ['-s3alias', '--ol-s3', '.mrap', '--x-s3', '--table-s3'];

/** What is wrong with a bucket's name by S3's rules, or undefined. */
function fault(name: string): string | undefined {
  if (name.length < 3 || name.length > 63) return 'has 3 to 63 characters';
  if (!/^[a-z0-9][a-z0-9.-]*[a-z0-9]$/.test(name)) {
    return 'is made of lower-case letters, digits, dots and hyphens, and begins and ends with a letter or digit';
  }
  if (name.includes('..')) return 'has no two dots in a row';
  if (/^\d+\.\d+\.\d+\.\d+$/.test(name)) return 'is no IP address';
  if (RESERVED_STARTS.some((start) => name.startsWith(start)))
    return `does not begin with ${RESERVED_STARTS.join(', ')}`;
  if (RESERVED_ENDS.some((end) => name.endsWith(end))) return `does not end with ${RESERVED_ENDS.join(', ')}`;
  return undefined;
}

/** @throws INVALID with `details.what` = bucket-name. Source: Amazon S3 user guide, "General purpose bucket naming rules". */
export function checkBucketName(name: string): void {
  const wrong = fault(name);
  if (wrong === undefined) return;
  throw new WebdfsError('INVALID', `a bucket's name ${wrong}`, { details: { what: 'bucket-name' } });
}
