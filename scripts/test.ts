import { spawnSync } from 'node:child_process';
import { statSync } from 'node:fs';

/**
 * `npm test` runs every `*.test.ts`; `npm test -- FILE|FOLDER …` only those. (The runner's own discovery would also take
 * every file below `test/`, long proofs and real clients included.)
 */
const words = process.argv.slice(2).map((word) => {
  const folder = !word.startsWith('-') && statSync(word, { throwIfNoEntry: false })?.isDirectory() === true;
  return folder ? `${word.replace(/\/$/, '')}/**/*.test.ts` : word;
});
const named = words.some((word) => !word.startsWith('-'));
const patterns = named ? [] : ['packages/*/src/**/*.test.ts', 'test/*.test.ts'];
const flags = ['--conditions=webdfs:source', '--disable-warning=ExperimentalWarning', '--test', '--test-reporter=spec'];
const { status } = spawnSync(process.execPath, [...flags, ...words, ...patterns], { stdio: 'inherit' });
process.exit(status ?? 1);
