import type { MetadataGenerator } from './parts.ts';

/** Files of one size, as many as come nearest to the whole. @param bytes  of each */
export function filesOfOneSize(bytes: number): MetadataGenerator {
  return {
    name: 'files of one size',
    sizes: (totalBytes) => Array.from({ length: Math.max(1, Math.round(totalBytes / bytes)) }, () => bytes),
  };
}
