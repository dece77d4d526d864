import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import { ERROR_CODES, REMEDY } from '@webdfs/base';
import { REFUSAL_OF } from './errors.ts';
import { statusOf } from './refusal.ts';
import { ROUTES } from './s3/routes.ts';

async function rowsOf(page: string): Promise<string[][]> {
  const text = await readFile(new URL(`../../../docs/${page}`, import.meta.url), 'utf8');
  const rows = text.split('\n').filter((line) => line.startsWith('| '));
  return rows.slice(2).map((row) =>
    row
      .split('|')
      .map((cell) => cell.trim())
      .slice(1, -1),
  );
}

test('the page of S3 operations names exactly what has a route', async () => {
  const rows = await rowsOf('guide/s3-operations.md');
  const built = rows.filter(([, answered]) => answered !== 'no');
  const named = built.map(([, , request]) => request!.replaceAll('`', ''));
  const routes = Object.entries(ROUTES).flatMap(([subject, names]) =>
    Object.keys(names).map((name) => `${subject}: ${name}`),
  );
  assert.deepEqual(named.toSorted(), routes.toSorted());
  assert.ok(rows.every(([, answered]) => ['yes', 'no', 'partly'].includes(answered!)));
});

test('the page of errors is what the doors answer', async () => {
  const rows = await rowsOf('errors.md');
  const expected = ERROR_CODES.map((code) => [
    code,
    REMEDY[code],
    String(statusOf(REFUSAL_OF[code])),
    REFUSAL_OF[code],
  ]);
  assert.deepEqual(
    rows.map((row) => row.slice(0, 4)),
    expected,
  );
});
