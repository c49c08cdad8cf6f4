import { levels } from 'pino';

/** Values that need no quotes. */
const plain = /^[^\s"=]+$/;

/** Converts a JSON line of the log to text: time, level, message, the other members, and the stack below. */
export function textOfLine(line: string): string {
  const { time, level, msg = '', err, ...members }: Record<string, unknown> = JSON.parse(line);
  const name = levels.labels[Number(level)] ?? String(level);
  const { message, stack } = (err ?? {}) as { readonly message?: unknown; readonly stack?: unknown };
  const shown = Object.entries({ ...members, ...(message !== undefined && { err: message }) });
  const parts = [
    time,
    name.toUpperCase().padEnd(5),
    msg,
    ...shown.map(([member, value]) => `${member}=${shownValue(value)}`),
  ];
  const below = typeof stack === 'string' ? `\n${stack.replaceAll(/^/gm, '    ')}` : '';
  return `${parts.join(' ')}${below}\n`;
}

function shownValue(value: unknown): string {
  return typeof value === 'string' && plain.test(value) ? value : JSON.stringify(value);
}
