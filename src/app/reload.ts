import { statSync } from 'node:fs';
import type { Part, Reload } from '../api/services/dependencies.ts';
import { type MasterKeySource, reloadableMasterKeys } from '../config/config.ts';
import { readKeyRing } from '../config/master-key.ts';
import { utcTimestamp } from '../domain/utc.ts';
import type { TlsListeners } from '../http/listen/tls-listeners.ts';
import { checkSealedSecrets } from '../keys/sealed-secrets.ts';
import { refuseChangeableByOthers } from '../lib/file-access.ts';
import type { Registry } from '../operations/registry.ts';
import type { Start } from './start.ts';

/**
 * Returns a reload that runs once at a time. Calls that wait for the same run share it, so that many signals queue no more than
 * one. It logs what it returns, and calls `publish` when there are other master keys.
 */
export function createReload(
  { config, clock, log }: Start,
  registry: Registry,
  tls: TlsListeners,
  publish: () => void,
): Reload {
  let running: Promise<unknown> = Promise.resolve();
  let waiting: Promise<readonly Part[]> | undefined;

  /** Uses the new keys if every secret opens with them. Returns their names. */
  async function replaceKeys(source: MasterKeySource): Promise<string[]> {
    const next = readKeyRing(source);
    await checkSealedSecrets(registry.execute, next, Math.floor(clock.nowMs() / 1000));
    registry.keyRing.replace(next);
    publish();
    return next.masterKeys.map(({ name }) => name);
  }

  async function reloadKeys(): Promise<Part> {
    const name = 'master keys';
    const { files, read } = reloadableMasterKeys(config.variables);
    if (files.length === 0) {
      const detail = 'they come from a variable, so a change needs a restart';
      log.info(`master keys not reloaded: ${detail}`);
      return { name, result: 'NOT_RELOADABLE', detail };
    }
    try {
      rejectIrregular(files);
      refuseChangeableByOthers(files);
      const names = await replaceKeys(read());
      log.info({ files, names }, 'master keys reloaded');
      return { name, result: 'RELOADED', detail: names.join(', ') };
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      log.error({ files, why }, 'master keys not reloaded: the old ones stay');
      return { name, result: 'FAILED', detail: why };
    }
  }

  async function reload(): Promise<readonly Part[]> {
    const certificates = tls.reload().map(({ listener, endsAtMs, failure }): Part => {
      const result = failure === undefined ? 'RELOADED' : 'FAILED';
      return { name: `${listener} certificate`, result, detail: failure ?? utcTimestamp(endsAtMs) };
    });
    return [await reloadKeys(), ...certificates];
  }

  return () => {
    waiting ??= running.then(() => {
      waiting = undefined;
      const current = reload();
      running = current.catch(() => {});
      return current;
    });
    return waiting;
  };
}

/** Rejects pipes and the like: they can be read once, and opening one could wait for ever. */
function rejectIrregular(files: readonly string[]): void {
  for (const file of files) {
    if (statSync(file, { throwIfNoEntry: false })?.isFile() === false)
      throw new Error(`${file} is no regular file: it can be read only at the start`);
  }
}
