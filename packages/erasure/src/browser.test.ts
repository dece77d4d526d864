import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';

/**
 * Stands for a browser: a realm with what ECMAScript and WebAssembly define, `atob`, and nothing of Node.js. Modules of the package
 * are loaded into it by their relative names; `@webdfs/base/errors` is the one other that they may name.
 */
const REALM = `
  import { readFileSync } from 'node:fs';
  import { stripTypeScriptTypes } from 'node:module';
  import vm from 'node:vm';
  const realm = vm.createContext({ atob: (text) => atob(text) });
  const modules = new Map();
  function load(url) {
    if (!modules.has(url)) {
      const text = stripTypeScriptTypes(readFileSync(new URL(url), 'utf8'));
      modules.set(url, new vm.SourceTextModule(text, { context: realm, identifier: url }));
    }
    return modules.get(url);
  }
  function link(name, from) {
    if (name === '@webdfs/base/errors') return load(import.meta.resolve(name));
    if (name.startsWith('./') || name.startsWith('../')) return load(new URL(name, from.identifier).href);
    throw new Error(from.identifier + ' imports ' + name);
  }
  const main = load(process.env.INDEX);
  await main.link(link);
  await main.evaluate();
  realm.erasure = main.namespace;
  console.log(vm.runInContext(\`
    const kernel = erasure.openKernel();
    const code = new erasure.ReedSolomon({ kernel, data: 4, parity: 2 });
    const shards = [1, 2, 4, 128, 0, 0].map((byte) => Uint8Array.of(byte));
    code.encode(shards.slice(0, 4), shards.slice(4));
    const whole = code.decode([undefined, ...shards.slice(1, 4), undefined, shards[5]]);
    [kernel.name, typeof process, typeof Buffer, ...whole.map((shard) => shard[0])].join()
  \`, realm));
`;

test('the package needs nothing of Node.js: it runs where only a browser could', () => {
  const flags = ['--conditions=webdfs:source', '--experimental-vm-modules', '--no-warnings', '--input-type=module'];
  const { stdout, stderr } = spawnSync(process.execPath, [...flags, '--eval', REALM], {
    cwd: import.meta.dirname,
    env: { ...process.env, INDEX: import.meta.resolve('./index.ts') },
    encoding: 'utf8',
  });
  assert.equal(`${stdout}${stderr}`, 'relaxed,undefined,undefined,1,2,4,128,135,217\n');
});
