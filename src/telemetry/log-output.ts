import type { Writable } from 'node:stream';

/** Lines on their way to whoever reads the log. */
export interface LogOutput {
  /** Takes a line; drops it if too much waits to be read. */
  write(line: string): void;
  /** Hands over what is gathered. */
  flush(): void;
  /** How many lines were dropped since it was last asked; none as long as there is no room to tell. */
  takeDropped(): number;
}

/** Characters that are gathered before they are written. */
const gatheredMax = 4_096;
/** Characters that wait for a reader before lines are dropped. */
const waitingMax = 1_048_576;

/** Gathers lines for a stream. The reader of a log must hold up neither the service nor its memory. */
export function createLogOutput(stream: Writable): LogOutput {
  let gathered = '';
  let dropped = 0;
  const hasRoom = () => stream.writableLength + gathered.length < waitingMax;
  const flush = () => {
    if (gathered !== '') stream.write(gathered);
    gathered = '';
  };
  // A log that cannot be written any more must not take the service down.
  stream.on('error', () => {});
  return {
    write: (line) => {
      if (!hasRoom()) {
        dropped += 1;
        return;
      }
      gathered += line;
      if (gathered.length >= gatheredMax) flush();
    },
    flush,
    takeDropped: () => {
      if (!hasRoom()) return 0;
      const taken = dropped;
      dropped = 0;
      return taken;
    },
  };
}
