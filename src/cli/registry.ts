import { openRegistry, type Registry, type RegistryOptions } from '../registry.ts';
import { type Config, readConfig, unknownSettings } from '../settings/config.ts';
import type { Terminal } from './command.ts';

/** Does something with the database of the deployment. */
export async function withRegistry(
  terminal: Terminal,
  work: (registry: Registry, config: Config) => Promise<void>,
  options?: RegistryOptions,
): Promise<undefined> {
  for (const variable of unknownSettings(terminal.env)) {
    terminal.printError(`artseal: ${variable} is no setting and changes nothing; artseal --help lists them`);
  }
  const config = readConfig(terminal.env);
  const registry = await openRegistry(config, 'EXISTING', options);
  try {
    await work(registry, config);
  } finally {
    await registry.store.close();
  }
}
