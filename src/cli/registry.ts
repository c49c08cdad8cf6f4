import { readConfig, unknownSettings } from '../config.ts';
import { openRegistry, type Registry } from '../registry.ts';
import type { Terminal } from './command.ts';

/** Does something with the database of the deployment. */
export async function withRegistry(
  terminal: Terminal,
  work: (registry: Registry) => Promise<void>,
): Promise<undefined> {
  for (const variable of unknownSettings(terminal.env)) {
    terminal.printError(`artseal: ${variable} is no setting and changes nothing; artseal --help lists them`);
  }
  const registry = await openRegistry(readConfig(terminal.env), 'EXISTING');
  try {
    await work(registry);
  } finally {
    await registry.store.close();
  }
}
