/** What must happen though a test is told to end: processes, networks and the like are nobody's otherwise. */

const rites = new Set<() => void>();
let isListening = false;

function perform(): void {
  for (const rite of rites) rite();
  rites.clear();
}

function listen(): void {
  if (isListening) return;
  isListening = true;
  process.on('exit', perform);
  // without a listener a signal ends the process at once, and nothing is done any more
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, () => process.exit(1));
}

/** Has `rite`, which must not wait for anything, done when this process ends; disposing of it takes that back. */
export function atTheEnd(rite: () => void): Disposable {
  listen();
  rites.add(rite);
  return { [Symbol.dispose]: () => void rites.delete(rite) };
}
