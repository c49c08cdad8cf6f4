import type { MaintenanceService } from '../../../gen/artseal/v1/maintenance_pb.ts';
import { checkReasoned } from '../../domain/audit-entry.ts';
import { countSeals, reencryptSecrets, sealedKeys } from '../../keys/sealed-secrets.ts';
import type { Execute } from '../../store/store.ts';
import { actorOf, type Operations } from '../operation.ts';
import type { ServiceDependencies } from './dependencies.ts';
import { replaceLostSecrets } from './lost-secrets.ts';

/** The operations of MaintenanceService on the secrets that master keys encrypt. */
export function createSecretOperations(
  dependencies: ServiceDependencies,
): Pick<Operations<typeof MaintenanceService>, 'reencryptSecrets' | 'rotateSecrets'> {
  const { clock, keyRing, onWebhookChange, refreshLogKeys } = dependencies;

  async function usesIn(execute: Execute) {
    const keys = await Array.fromAsync(sealedKeys(execute));
    return countSeals(keys, Math.floor(clock.nowMs() / 1_000));
  }

  return {
    reencryptSecrets: {
      check: checkReasoned,
      run: async ({ reason }, call) => {
        await call.admit();
        const [{ name: masterKey }, ...others] = keyRing.masterKeys;
        const before = await usesIn(call.execute);
        const by = actorOf(call, clock, reason);
        const reencrypted = await reencryptSecrets(call.execute, keyRing, by);
        const after = await usesIn(call.execute);
        const unused = others.filter(({ name }) => !after.some((use) => use.masterKey === name));
        onWebhookChange();
        const unusedMasterKeys = unused.map(({ name }) => name);
        return { masterKey, reencrypted, before: [...before], after: [...after], unusedMasterKeys };
      },
    },
    rotateSecrets: {
      check: checkReasoned,
      run: async ({ reason }, call) => {
        await call.admit();
        const by = actorOf(call, clock, reason);
        const replaced = await replaceLostSecrets({ ...dependencies, execute: call.execute }, by);
        onWebhookChange();
        await refreshLogKeys();
        return replaced;
      },
    },
  };
}
