import type { InstitutionKind } from '../institution.ts';
import { ledgerFileName } from './ledger-file-name.ts';
import type { SignedNotification } from './notifications.ts';

/** The simulated institution, as a deployment chooses it: there is nothing to set. */
export const simulated: InstitutionKind<object> = {
  name: 'simulated',
  movesMoney: false,
  otherUnits: [],
  ownFiles: [ledgerFileName],
  settings: {},
  open: async (_, { dataDir, clock, notificationUrl }) => {
    const { createSimulatedInstitution } = await import('./institution.ts');
    const deliver = async (notification: SignedNotification, signal: AbortSignal) => {
      const url = notificationUrl();
      if (url === undefined) throw new Error('The service does not listen yet.');
      await post(url, notification, signal);
    };
    return createSimulatedInstitution({ dataDir, clock, deliver });
  },
};

async function post(url: string, { headers, body }: SignedNotification, signal: AbortSignal): Promise<void> {
  const { ok, status, body: answer } = await fetch(url, { method: 'POST', headers, body, signal });
  await answer?.cancel();
  if (!ok) throw new Error(`The notification was answered with ${status}.`);
}
