import type { ProviderKind } from '../provider.ts';
import { ledgerFileName } from './ledger-file-name.ts';
import type { SignedNotification } from './notifications.ts';

/** The simulated provider, as a deployment chooses it: there is nothing to set. */
export const simulated: ProviderKind<object> = {
  name: 'simulated',
  movesMoney: false,
  otherUnits: [],
  parties: undefined,
  ownFiles: [ledgerFileName],
  settings: {},
  open: async (_, { dataDir, clock, ownListener }) => {
    const { createSimulatedProvider } = await import('./provider.ts');
    const deliver = async (notification: SignedNotification, signal: AbortSignal) => {
      const door = ownListener();
      if (door === undefined) throw new Error('The service does not listen yet.');
      // Not at the start, which would take longer for it.
      const { post } = await import('./post.ts');
      await post(door, notification, signal);
    };
    return createSimulatedProvider({ dataDir, clock, deliver });
  },
};
