import assert from 'node:assert/strict';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { runInNewContext } from 'node:vm';
import { ManualClock } from '@webdfs/base';
import { atMost } from './check.ts';
import { tableCsv } from './csv.ts';
import { reportHtml } from './html.ts';
import { environmentOf, exitCodeOfReport, numberColumn, type Report, type ReportTable, textColumn } from './report.ts';
import { reportText, tableText } from './terminal-text.ts';
import { verdictOf } from './verdict.ts';
import { writeReport } from './write-report.ts';

const TABLE: ReportTable = {
  id: 'moves',
  title: 'Moved copies',
  columns: [
    textColumn('change'),
    numberColumn('moved'),
    numberColumn('factor', 2),
    { title: 'verdict', kind: 'verdict' },
  ],
  rows: [
    ['add "rack" <8>, weight 8', 1_234_567, 1.02, 'reproduced'],
    ['drain', 20, null, 'differs, because of chance'],
  ],
};

function aReport(): Report {
  return {
    format: 'webdfs-report',
    version: 1,
    title: 'Placement & <friends>',
    summary: ['All is well.'],
    environment: environmentOf({ command: 'webdfs bench x', seed: 7, clock: new ManualClock() }),
    sections: [
      {
        id: 'moves',
        title: 'Moves',
        prose: ['What moves when </script> a cluster changes.'],
        tables: [TABLE],
        charts: [
          {
            id: 'bars',
            title: 'By node',
            kind: 'bar',
            x: { title: 'node </script>', scale: 'names' },
            y: { title: 'copies', scale: 'linear' },
            series: [
              {
                name: 'wrd',
                points: [
                  [1, 10],
                  [2, 20],
                ],
              },
              {
                name: 'target',
                reference: true,
                points: [
                  [1, 11],
                  [2, 19],
                ],
              },
            ],
          },
          {
            id: 'lines',
            title: 'Cost',
            kind: 'line',
            x: { title: 'sub-clusters', scale: 'log' },
            y: { title: 'ns', scale: 'log' },
            series: [
              {
                name: 'rush-r',
                points: [
                  [1, 90],
                  [100, 2400],
                ],
              },
            ],
          },
        ],
      },
    ],
    checks: [atMost('factor', 1.02, 1.08, 'ratio'), atMost('bias', 0.03, 0.01, 'share')],
  };
}

test('a table in CSV keeps every digit and quotes what would break it', () => {
  assert.equal(
    tableCsv(TABLE),
    'change,moved,factor,verdict\r\n"add ""rack"" <8>, weight 8",1234567,1.02,reproduced\r\n' +
      'drain,20,,"differs, because of chance"\r\n',
  );
});

test('a table in a terminal stands in columns, numbers to the right', () => {
  assert.deepEqual(tableText(TABLE).split('\n'), [
    'change                        moved  factor  verdict',
    'add "rack" <8>, weight 8  1,234,567    1.02  reproduced',
    'drain                            20          differs, because of chance',
  ]);
});

test('a report in a terminal says what failed', () => {
  assert.match(reportText(aReport()), /FAIL {5}bias/);
  assert.match(reportText(aReport()), /webdfs bench x; .*seed 7/);
});

test('a check that fails is told by the exit code', () => {
  const [passing] = aReport().checks;
  assert.equal(exitCodeOfReport(aReport()), 1);
  assert.equal(exitCodeOfReport({ ...aReport(), checks: [passing!] }), 0);
});

test('a run that proves nothing says so everywhere, and ends unlike one that failed', () => {
  const invalid = { ...aReport(), invalid: 'it <burned>' };
  assert.equal(exitCodeOfReport(invalid), 2);
  assert.match(reportText(invalid), /not valid: it <burned>/);
  assert.match(reportHtml(invalid), /not valid: it &lt;burned&gt;/);
});

test('a verdict is about the digit, then about noise, then says why', () => {
  assert.equal(verdictOf({ published: 5581, measured: 5581, noise: 0 }), 'reproduced');
  assert.equal(verdictOf({ published: 5581, measured: 5600, noise: 50 }), 'within noise');
  assert.equal(verdictOf({ published: 100, measured: 90, noise: 9, because: 'of sets' }), 'differs, because of sets');
});

test('the page loads nothing, runs only its own scripts, and text in it stays text', () => {
  const page = reportHtml(aReport());
  assert.match(
    page,
    /Content-Security-Policy" content="default-src 'none'; style-src 'sha256-[^"']+'; script-src 'sha256-/,
  );
  assert.doesNotMatch(page, /<(?:link|img|iframe)\b|\bsrc=|@import|sourceMappingURL/);
  assert.equal(page.match(/<\/script>/g)?.length, 3);
  assert.match(page, /Placement &amp; &lt;friends&gt;/);
  assert.match(page, /<td class="verdict differs">/);
  assert.match(page, /<details open><summary>Checks: 1 of 2 pass<\/summary>/);
});

test('the scripts of the page draw each chart with the colours of the theme, and again when it changes', () => {
  const scripts = [...reportHtml(aReport()).matchAll(/<script(?: type="([^"]*)")?[^>]*>([^]*?)<\/script>/g)];
  const drawn: { id: string; config: { type: string; data: { datasets: { backgroundColor?: string }[] } } }[] = [];
  let destroyed = 0;
  let changed = (): void => {};
  const scope = {
    Chart: class {
      constructor(canvas: { id: string }, config: never) {
        drawn.push({ id: canvas.id, config });
      }
      destroy(): void {
        destroyed++;
      }
    },
    document: {
      documentElement: {},
      getElementById: (id: string) => ({ id, textContent: id === 'charts' ? scripts[0]![2] : '' }),
    },
    getComputedStyle: () => ({ getPropertyValue: (name: string) => ` colour of ${name}` }),
    matchMedia: () => ({ addEventListener: (_: string, listener: () => void) => (changed = listener) }),
  };
  assert.equal(scripts[0]![1], 'application/json');
  assert.match(scripts[1]![2]!, /Chart\.js v4/);
  runInNewContext(scripts[2]![2]!, scope);
  assert.deepEqual(
    drawn.map(({ id, config }) => [id, config.type]),
    [
      ['moves-bars', 'bar'],
      ['moves-lines', 'line'],
    ],
  );
  assert.equal(drawn[0]!.config.data.datasets[0]!.backgroundColor, 'colour of --series-0');
  changed();
  assert.equal(destroyed, 2);
  assert.equal(drawn.length, 4);
});

test('a report on disk is a page, its own JSON, and a CSV file for every table', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'webdfs-report-'));
  try {
    const paths = await writeReport(join(folder, 'out'), aReport());
    const names = await readdir(join(folder, 'out'));
    assert.deepEqual(names.toSorted(), ['moves-moves.csv', 'report.html', 'report.json']);
    assert.equal(paths.length, 3);
    assert.deepEqual(JSON.parse(await readFile(join(folder, 'out', 'report.json'), 'utf8')), aReport());
  } finally {
    await rm(folder, { recursive: true });
  }
});
