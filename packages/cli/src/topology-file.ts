import { readFile } from 'node:fs/promises';
import { WebdfsError } from '@webdfs/base';
import { parseTopologyFile, type TopologyFile } from '@webdfs/webdfs';

/** The cluster that a file describes. @throws WebdfsError NOT_FOUND if it cannot be read, INVALID that names the entry */
export async function readTopologyFile(path: string): Promise<TopologyFile> {
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (error) {
    throw new WebdfsError('NOT_FOUND', `cannot read ${path}`, { cause: error });
  }
  return parseTopologyFile(path, text);
}
