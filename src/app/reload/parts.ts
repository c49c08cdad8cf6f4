import type { ReloadableSettings } from '../../config/config.ts';
import { readKeyRing } from '../../config/master-key.ts';
import type { Clock } from '../../domain/clock.ts';
import { checkSealedSecrets } from '../../keys/sealed-secrets.ts';
import type { Registry } from '../../operations/registry.ts';
import type { ServingRecordPublisher } from '../../operations/serving-record.ts';
import type { ReloadPart } from './reload.ts';

/** Reloads the master keys if every secret opens with them, and publishes them to commands. */
export function masterKeyPart(
  { files, read }: ReloadableSettings['masterKeys'],
  { execute, keyRing }: Pick<Registry, 'execute' | 'keyRing'>,
  clock: Clock,
  serving: ServingRecordPublisher,
): ReloadPart {
  return {
    what: 'master keys',
    files,
    reload: async () => {
      const next = readKeyRing(read());
      await checkSealedSecrets(execute, next, Math.floor(clock.nowMs() / 1000));
      serving.retract();
      keyRing.replace(next);
      serving.publish();
      return { names: next.masterKeys.map(({ name }) => name) };
    },
  };
}
