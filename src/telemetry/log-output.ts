import type { Writable } from 'node:stream';
import { logLevels } from '../lib/log.ts';

/** See `createLogOutput`. */
export type LogOutput = ReturnType<typeof createLogOutput>;

/** How many characters are gathered before they are written. */
const gatheredMax = 4_096;
/** How many characters may wait for the reader before lines are dropped. */
const waitingMax = 1_048_576;

/** Writes log lines to a stream, in batches. Drops lines while the reader is too slow, and counts them. */
export function createLogOutput(stream: Writable) {
  let gathered = '';
  let dropped = 0;
  const hasRoom = () => stream.writableLength + gathered.length < waitingMax;
  const flush = () => {
    if (gathered !== '') stream.write(gathered);
    gathered = '';
  };
  // The server continues if the log cannot be written any more.
  stream.on('error', () => {});
  return {
    /** Adds a line, or drops it if too much is waiting for the reader. */
    write: (line: string): void => {
      if (!hasRoom()) {
        dropped += 1;
        return;
      }
      gathered += line;
      if (gathered.length >= gatheredMax) flush();
    },
    /** Writes the lines that are gathered. */
    flush,
    /** How many lines were dropped since the last call; 0 while there is no room to log that. */
    takeDropped: (): number => {
      if (!hasRoom()) return 0;
      const taken = dropped;
      dropped = 0;
      return taken;
    },
  };
}

const levelNames = new Map<unknown, string>(Object.entries(logLevels).map(([name, level]) => [level, name]));

/** Values that need no quotes. */
const plain = /^[^\s"=]+$/;

/** Converts a JSON line of the log to text: time, level, message, the other members, and the stack below. */
export function textOfLine(line: string): string {
  const { time, level, msg = '', err, ...members }: Record<string, unknown> = JSON.parse(line);
  const name = levelNames.get(level) ?? String(level);
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
