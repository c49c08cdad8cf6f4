import { type Config, readConfig, readDataDir, unknownSettings } from '../config/config.ts';
import { openRegistry, type Registry, type RegistryOptions } from '../operations/registry.ts';
import { exitCodes, type Terminal } from './command.ts';
import { serverLimitMs, waitForServer } from './server-refresh.ts';

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

/** Changes something in the database of the deployment; returns when a running server has read it, or with an exit code if it does not. */
export async function changeRegistry(
  terminal: Terminal,
  work: (registry: Registry, config: Config) => Promise<void>,
): Promise<number | undefined> {
  await withRegistry(terminal, work);
  if (await waitForServer(readDataDir(terminal.env))) return undefined;
  terminal.printError(
    `artseal: the change is stored, but the running server has not read it within ${serverLimitMs / 1_000} seconds: its log and /readyz say why; restart it if it does not recover`,
  );
  return exitCodes.failed;
}
