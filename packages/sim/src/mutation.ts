import { registerHooks } from 'node:module';
import { isSourceMutant, type SourceMutant, SOURCE_MUTANTS } from './source-mutants.ts';

/**
 * Loaded before all else (`--import …/mutation.ts?NAME`): gives the modules of this process as a mutant has them. Each of its
 * edits must fit exactly once; the process ends by itself where one does not.
 */
const name = decodeURIComponent(new URL(import.meta.url).search.slice(1));
if (!isSourceMutant(name)) throw new Error(`there is no mutant ${name}`);
const { edits }: SourceMutant = SOURCE_MUTANTS[name];

registerHooks({
  load(url, context, nextLoad) {
    const loaded = nextLoad(url, context);
    const mine = edits.filter(({ file }) => url.endsWith(`/packages/${file}`));
    if (mine.length === 0) return loaded;
    let source = new TextDecoder().decode(loaded.source as Uint8Array);
    for (const { file, find, replace } of mine) {
      const [before, after, ...more] = source.split(find);
      if (after === undefined || more.length > 0) throw new Error(`${name}: ${file} does not have it once: ${find}`);
      source = `${before}${replace}${after}`;
    }
    return { ...loaded, source };
  },
});
