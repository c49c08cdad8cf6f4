import type { PaymentProvider } from '../provider.ts';
import { openSimulator, type SimulatorOptions } from './simulator.ts';

/**
 * A provider for sandboxes: it moves no money, but keeps books of its own that outlive the process, and
 * what can go wrong with a real one goes wrong for parties whose ids ask for it (see scriptByParties).
 * Closing it ends its calls and deliveries and lets go of its file.
 */
export function createSimulatedProvider(options: SimulatorOptions): PaymentProvider {
  const simulator = openSimulator(options);
  const connection = simulator.connect();
  return {
    ...connection,
    close: async () => {
      await connection.close();
      simulator.close();
    },
  };
}
