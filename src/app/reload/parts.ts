import type { ReloadableSettings } from '../../config/config.ts';
import { readKeyRing } from '../../config/master-key.ts';
import type { Clock } from '../../domain/clock.ts';
import { checkSealedSecrets } from '../../keys/sealed-secrets.ts';
import type { Registry } from '../../operations/registry.ts';
import type { ServingTeller } from '../../operations/serving-record.ts';
import type { ReloadPart } from './reload.ts';

/** Master keys: those of the file, where every secret opens with them. The commands beside this process are told of them. */
export function masterKeyPart(
  { files, read }: ReloadableSettings['masterKeys'],
  { execute, keyRing }: Pick<Registry, 'execute' | 'keyRing'>,
  clock: Clock,
  serving: ServingTeller,
): ReloadPart {
  return {
    what: 'master keys',
    files,
    reload: async () => {
      const next = readKeyRing(read());
      await checkSealedSecrets(execute, next, Math.floor(clock.nowMs() / 1000));
      serving.retract();
      keyRing.replace(next);
      serving.tell();
      return { names: next.masterKeys.map(({ name }) => name) };
    },
  };
}
