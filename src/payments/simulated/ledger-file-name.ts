/** The simulator's file in its folder. */
export const ledgerFileName = 'simulated-provider.db';
