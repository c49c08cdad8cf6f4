import { readConfig } from '../config.ts';
import { openRegistry, type Registry } from '../registry.ts';
import type { Terminal } from './command.ts';

/** Does something with the database of the deployment, and makes it durable. */
export async function withRegistry(
  terminal: Terminal,
  work: (registry: Registry) => Promise<void>,
): Promise<void> {
  const registry = await openRegistry(readConfig(terminal.env), 'EXISTING');
  try {
    await work(registry);
  } finally {
    await registry.store.close();
  }
}
