import { runSeed } from './run.ts';
const first = Number(process.argv[2] ?? 1);
const n = Number(process.argv[3] ?? 1);
const step = Number(process.argv[4] ?? 1);
let cpu = process.cpuUsage().user;
for (let seed = first; seed < first + n; seed += step) {
  const r = await runSeed({ seed, logLevel: (process.env.LEVEL ?? 'info') as 'info' });
  const now = process.cpuUsage().user;
  if (r.failure || seed % 20 === 0 || n === 1)
    console.log(
      seed,
      r.digest,
      r.happened,
      Math.round(r.simulatedMs),
      'ops',
      r.operations,
      'unk',
      r.unknown,
      'faults',
      r.faults,
      `${((now - cpu) / 1000).toFixed(0)} ms`,
      r.failure?.message.split('\n').slice(0, 12).join('\n') ?? 'ok',
    );
  cpu = now;
  if (r.failure && n === 1) console.log(r.failure.transcript.join('\n'));
}
