import { levels } from 'pino';

/** Words of values that need no quotes. */
const plain = /^[^\s"=]+$/;

/** A line of the log, which is JSON, as text for people: time, level and message, then the other members, and below them a stack. */
export function textOfLine(line: string): string {
  const { time, level, msg = '', err, ...members }: Record<string, unknown> = JSON.parse(line);
  const name = levels.labels[Number(level)] ?? String(level);
  const { message, stack } = (err ?? {}) as { readonly message?: unknown; readonly stack?: unknown };
  const shown = Object.entries({ ...members, ...(message !== undefined && { err: message }) });
  const parts = [
    time,
    name.toUpperCase().padEnd(5),
    msg,
    ...shown.map(([of, value]) => `${of}=${shownValue(value)}`),
  ];
  const below = typeof stack === 'string' ? `\n${stack.replaceAll(/^/gm, '    ')}` : '';
  return `${parts.join(' ')}${below}\n`;
}

function shownValue(value: unknown): string {
  return typeof value === 'string' && plain.test(value) ? value : JSON.stringify(value);
}
