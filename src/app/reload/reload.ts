import { statSync } from 'node:fs';
import type { Logger } from 'pino';
import { refuseChangeableByOthers } from '../../lib/file-access.ts';

/** A part of a running service that is read from files, and can be read anew. */
export interface ReloadPart {
  /** As the log names it. */
  readonly what: string;
  /** What it is read from; nothing is read anew where there are none. */
  readonly files: readonly string[];
  /** Reads the files and puts in force what they say; facts for the log. Changes nothing where it throws. */
  reload(): Promise<object>;
}

/** Reads parts anew, each by itself: all that its files say, or, logged as an error, nothing. */
export type Reload = (parts: readonly ReloadPart[]) => Promise<void>;

/** One reload at a time; who asks while one is under way and another one waits is given that. */
export function createReload(log: Logger): Reload {
  let underWay = Promise.resolve();
  let waiting: Promise<void> | undefined;
  return (parts) => {
    waiting ??= underWay.then(() => {
      waiting = undefined;
      underWay = reloadAll(parts, log);
      return underWay;
    });
    return waiting;
  };
}

async function reloadAll(parts: readonly ReloadPart[], log: Logger): Promise<void> {
  for (const { what, files, reload } of parts) {
    if (files.length === 0) {
      log.info({ what }, 'not read anew: they come from no file, and stay as they were at the start');
      continue;
    }
    try {
      refuseIrregular(files);
      refuseChangeableByOthers(files);
      log.info({ what, files, ...(await reload()) }, 'read anew and in force');
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      log.error({ what, files, why }, 'not read anew: what was in force stays in force');
    }
  }
}

/** Refuses pipes and the like, which can be read once; to open one could wait for ever. */
function refuseIrregular(files: readonly string[]): void {
  for (const file of files) {
    if (statSync(file, { throwIfNoEntry: false })?.isFile() === false)
      throw new Error(`${file} is no regular file, so it was read at the start for good`);
  }
}
