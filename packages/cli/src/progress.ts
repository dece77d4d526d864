import type { Clock } from '@webdfs/base';
import { formatBytes, formatDuration, type Terminal } from './terminal.ts';

const REDRAW_MS = 200;
const BAR_WIDTH = 24;

/** How far a transfer is: `text` is what stands on the line. Pure, so that a test can read it. */
export function progressLine(state: {
  label: string;
  done: number;
  total: number | undefined;
  seconds: number;
  columns: number;
}): string {
  const rate = state.seconds > 0 ? state.done / state.seconds : 0;
  const speed = `${formatBytes(Math.round(rate))}/s`;
  if (state.total === undefined || state.total === 0) {
    return `${state.label}  ${formatBytes(state.done)}  ${speed}`.slice(0, state.columns - 1);
  }
  const share = Math.min(1, state.done / state.total);
  const filled = Math.round(share * BAR_WIDTH);
  const bar = `[${'#'.repeat(filled)}${'.'.repeat(BAR_WIDTH - filled)}]`;
  const left = rate > 0 ? formatDuration((state.total - state.done) / rate) : '?';
  const facts = `${bar} ${Math.floor(share * 100)} %  ${formatBytes(state.done)} of ${formatBytes(state.total)}  ${speed}  ${left} left`;
  const room = Math.max(8, state.columns - facts.length - 3);
  const label = state.label.length > room ? `…${state.label.slice(state.label.length - room + 1)}` : state.label;
  return `${label}  ${facts}`.slice(0, state.columns - 1);
}

/** A progress bar on a terminal; silent where there is none, or with `--json`. */
export class Progress {
  readonly #terminal: Terminal;
  readonly #clock: Clock;
  readonly #label: string;
  readonly #total: number | undefined;
  readonly #startedMs: number;
  #done = 0;
  #drawnMs = -Infinity;

  constructor(options: { terminal: Terminal; clock: Clock; label: string; total: number | undefined }) {
    this.#terminal = options.terminal;
    this.#clock = options.clock;
    this.#label = options.label;
    this.#total = options.total;
    this.#startedMs = options.clock.monotonic();
  }

  get #shown(): boolean {
    return this.#terminal.errors.isTTY === true && !this.#terminal.json;
  }

  add(bytes: number): void {
    this.#done += bytes;
    const now = this.#clock.monotonic();
    if (!this.#shown || now - this.#drawnMs < REDRAW_MS) return;
    this.#drawnMs = now;
    this.#draw(now);
  }

  end(): void {
    if (!this.#shown) return;
    this.#draw(this.#clock.monotonic());
    this.#terminal.errors.write('\n');
  }

  #draw(now: number): void {
    const line = progressLine({
      label: this.#label,
      done: this.#done,
      total: this.#total,
      seconds: (now - this.#startedMs) / 1000,
      columns: this.#terminal.errors.columns ?? 100,
    });
    this.#terminal.errors.write(`\r\u001B[K${line}`);
  }
}
