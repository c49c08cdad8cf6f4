import { statSync } from 'node:fs';
import type { MasterKeySource, ReloadableMasterKeys } from '../config/config.ts';
import { readKeyRing } from '../config/master-key.ts';
import type { TlsListeners } from '../http/listen/tls-listeners.ts';
import { checkSealedSecrets } from '../keys/sealed-secrets.ts';
import { refuseChangeableByOthers } from '../lib/file-access.ts';
import type { Registry } from '../operations/registry.ts';
import type { ServingRecordPublisher } from '../operations/serving-record.ts';
import type { Start } from './start.ts';

/** Reloads certificates and master keys. Logs the result: all of the new keys are used, or none. */
export type Reload = (masterKeys: ReloadableMasterKeys) => Promise<void>;

/** Returns a reload that runs once at a time. Calls that wait for the same run share it. */
export function createReload(
  { clock, log }: Start,
  registry: Registry,
  tls: TlsListeners,
  serving: ServingRecordPublisher,
): Reload {
  let running = Promise.resolve();
  let waiting: Promise<void> | undefined;

  /** Uses the new keys if every secret opens with them, and publishes them to commands. Returns their names. */
  async function replaceKeys(source: MasterKeySource): Promise<string[]> {
    const next = readKeyRing(source);
    await checkSealedSecrets(registry.execute, next, Math.floor(clock.nowMs() / 1000));
    serving.retract();
    registry.keyRing.replace(next);
    serving.publish();
    return next.masterKeys.map(({ name }) => name);
  }

  async function reloadKeys({ files, read }: ReloadableMasterKeys): Promise<void> {
    if (files.length === 0) {
      log.info('master keys not reloaded: they come from a variable, so a change needs a restart');
      return;
    }
    try {
      rejectIrregular(files);
      refuseChangeableByOthers(files);
      log.info({ files, names: await replaceKeys(read()) }, 'master keys reloaded');
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      log.error({ files, why }, 'master keys not reloaded: the old ones stay');
    }
  }

  return (masterKeys) => {
    tls.reload();
    waiting ??= running.then(() => {
      waiting = undefined;
      running = reloadKeys(masterKeys);
      return running;
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
