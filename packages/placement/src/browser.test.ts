import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { createServer, type IncomingMessage } from 'node:http';
import { stripTypeScriptTypes } from 'node:module';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { ALGORITHMS } from './topology.ts';

const folder = new URL('.', import.meta.url);

test('the room runs in a browser: at run time it needs nothing but itself', () => {
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter(
    (name) => /^[a-z0-9/-]+\.ts$/.test(name) && name !== 'conformance.ts',
  );
  assert.ok(files.length > 20);
  const foreign: string[] = [];
  for (const name of files) {
    const text = readFileSync(new URL(name, folder), 'utf8');
    for (const [statement, source] of text.matchAll(/^(?:import|export)\b[^;]*? from '([^']+)';/gm)) {
      if (!/^\.\.?\//.test(source!) || source!.endsWith('/conformance.ts')) foreign.push(`${name}: ${statement}`);
    }
    assert.doesNotMatch(text, /\b(?:Buffer|process)\b/, name);
  }
  assert.deepEqual(foreign, []);
});

test('the room depends on no other, so that it can be had alone', () => {
  const manifest = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as object;
  assert.ok(!('dependencies' in manifest));
  assert.ok(!('peerDependencies' in manifest));
});

/** Places what the frozen files hold, and says which lists differ. */
const PAGE = `<!doctype html><script type="module">
  import { ALGORITHMS, compilePlacement } from '/index.ts';
  const outcome = { compared: 0, differing: [] };
  try {
    for (const name of ALGORITHMS) {
      const { maps } = await (await fetch('/golden/' + name + '-v1.json')).json();
      for (const { topology, rows } of maps) {
        const bytes = atob(rows);
        const table = compilePlacement(topology, 10, 4);
        for (let group = 0; group < 1024; group++) {
          const frozen = [0, 1, 2, 3].map((rank) => {
            const at = (group * 4 + rank) * 2;
            return bytes.charCodeAt(at) + 256 * bytes.charCodeAt(at + 1);
          });
          outcome.compared++;
          if (table.members(group).join() !== frozen.join()) outcome.differing.push(name + ' ' + group);
        }
      }
    }
  } catch (error) {
    outcome.differing.push(String(error));
  }
  await fetch('/outcome', { method: 'POST', body: JSON.stringify(outcome) });
</script>`;

function answer(path: string): { type: string; text: string } | undefined {
  if (path === '/') return { type: 'text/html', text: PAGE };
  const file = new URL(`.${path}`, folder);
  if (!/^\/[a-z0-9/-]+\.(?:ts|json)$/.test(path) || !existsSync(file)) return undefined;
  const text = readFileSync(file, 'utf8');
  if (path.endsWith('.json')) return { type: 'application/json', text };
  return { type: 'text/javascript', text: stripTypeScriptTypes(text) };
}

async function textOf(request: IncomingMessage): Promise<string> {
  let text = '';
  for await (const part of request) text += String(part);
  return text;
}

/** The room's sources as a site; `outcome` is what the page sends. */
async function serve(context: TestContext): Promise<{ port: number; outcome: Promise<string> }> {
  const outcome = Promise.withResolvers<string>();
  const server = createServer((request, response) => {
    if (request.method === 'POST') {
      response.end();
      textOf(request).then(outcome.resolve, outcome.reject);
      return;
    }
    const found = answer(request.url ?? '/');
    response.writeHead(found === undefined ? 404 : 200, { 'content-type': found?.type ?? 'text/plain' });
    response.end(found?.text);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  context.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return { port: (server.address() as AddressInfo).port, outcome: outcome.promise };
}

const browser = [
  process.env['WEBDFS_BROWSER'],
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
].find((path) => path !== undefined && existsSync(path));

test(
  'a headless Chromium places as the frozen files say',
  { timeout: 120_000, skip: browser === undefined ? 'no Chromium here; WEBDFS_BROWSER names one' : false },
  async (t) => {
    const { port, outcome } = await serve(t);
    const profile = mkdtempSync(join(tmpdir(), 'webdfs-browser-'));
    const flags = ['--headless=new', '--no-sandbox', '--disable-gpu', '--no-first-run', `--user-data-dir=${profile}`];
    const child = spawn(browser!, [...flags, `http://127.0.0.1:${port}/`], { stdio: 'ignore', detached: true });
    const ended = once(child, 'exit');
    t.after(async () => {
      // the whole group: a browser is many processes
      if (child.exitCode === null) process.kill(-child.pid!, 'SIGKILL');
      await ended;
      rmSync(profile, { recursive: true, force: true, maxRetries: 5 });
    });
    const gone = ended.then(() => Promise.reject(new Error('the browser ended without an outcome')));
    const { compared, differing } = JSON.parse(await Promise.race([outcome, gone])) as {
      compared: number;
      differing: string[];
    };
    gone.catch(() => {});
    assert.deepEqual(differing, []);
    assert.equal(compared, ALGORITHMS.length * 2 * 1024);
  },
);
