import { join } from 'node:path';
import type { ProviderKind } from '../provider.ts';

/** The file of the provider's books in the data folder. */
const booksFileName = 'simulated-provider.db';

/** The simulated provider. It has no settings. */
export const simulated: ProviderKind<object> = {
  name: 'simulated',
  movesMoney: false,
  otherUnits: [],
  parties: undefined,
  ownFiles: [booksFileName],
  settings: {},
  open: async (_, { dataDir, ...surroundings }) => {
    const { createSimulatedProvider } = await import('./provider.ts');
    return createSimulatedProvider({ ...surroundings, file: join(dataDir, booksFileName) });
  },
};
