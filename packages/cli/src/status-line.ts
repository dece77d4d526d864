import type { Clock } from '@webdfs/base';
import type { Terminal } from './terminal.ts';

const REDRAW_MS = 200;

/** One line on the terminal that is written over and over; silent where there is no terminal, or with `--json`. */
export class StatusLine {
  readonly #terminal: Terminal;
  readonly #clock: Clock;
  #drawnMs = -Infinity;
  #isDrawn = false;

  constructor(terminal: Terminal, clock: Clock) {
    this.#terminal = terminal;
    this.#clock = clock;
  }

  show(text: string): void {
    const { errors, json } = this.#terminal;
    const now = this.#clock.monotonic();
    if (errors.isTTY !== true || json || now - this.#drawnMs < REDRAW_MS) return;
    this.#drawnMs = now;
    this.#isDrawn = true;
    errors.write(`\r\u001B[K${text.slice(0, (errors.columns ?? 100) - 1)}`);
  }

  /** Wipes the line. */
  end(): void {
    if (this.#isDrawn) this.#terminal.errors.write('\r\u001B[K');
    this.#isDrawn = false;
  }
}
