/** Structured log lines: one JSON object a line, so that machines and people can both read them. */
export type LogLevel = 'debug' | 'info' | 'warn' | 'error';
export type LogFields = Readonly<Record<string, string | number | boolean | undefined>>;

export interface Log {
  debug(event: string, fields?: LogFields): void;
  info(event: string, fields?: LogFields): void;
  warn(event: string, fields?: LogFields): void;
  error(event: string, fields?: LogFields): void;
  /** A log whose lines carry `fields` too. */
  with(fields: LogFields): Log;
}

const ORDER: Record<LogLevel, number> = { debug: 0, info: 1, warn: 2, error: 3 };

/** A log that hands lines of at least `least` to `write`. Secrets are never handed to a log: callers see to that. */
export function makeLog(options: {
  write: (line: string) => void;
  now: () => number;
  least?: LogLevel;
  fields?: LogFields;
}): Log {
  const least = ORDER[options.least ?? 'info'];
  const line = (level: LogLevel, event: string, fields?: LogFields): void => {
    if (ORDER[level] < least) return;
    options.write(
      JSON.stringify({ time: new Date(options.now()).toISOString(), level, event, ...options.fields, ...fields }),
    );
  };
  return {
    debug: (event, fields) => line('debug', event, fields),
    info: (event, fields) => line('info', event, fields),
    warn: (event, fields) => line('warn', event, fields),
    error: (event, fields) => line('error', event, fields),
    with: (fields) => makeLog({ ...options, fields: { ...options.fields, ...fields } }),
  };
}

export const silentLog: Log = makeLog({ write: () => undefined, now: () => 0, least: 'error' });
