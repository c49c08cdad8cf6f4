import type { TestContext } from 'node:test';
import { artsealWith } from './artseal.ts';
import { type ServiceOptions, startService } from './service.ts';
import { temporaryFolder } from './temporary-folder.ts';

/** How a command reaches the services. */
export const connections = ['a running server', 'a stopped folder', 'a remote server'] as const;

/** The commands of an empty registry, over a connection. */
export async function commandsOver(
  t: TestContext,
  connection: (typeof connections)[number],
  { env = {}, ...options }: ServiceOptions = {},
) {
  const dataDir = temporaryFolder(t);
  const local = { ARTSEAL_DATA_DIR: dataDir, ...env };
  if (connection === 'a stopped folder') {
    await artsealWith(local).text('init');
    return artsealWith(local);
  }
  const service = await startService(t, { env, dataDir, ...options });
  if (connection === 'a running server') return artsealWith({ ARTSEAL_DATA_DIR: dataDir });
  return artsealWith({ ARTSEAL_TOKEN: await service.token(true) }, ['--url', service.internalUrl]);
}

/** The commands of `artsealWith`. */
export type Commands = ReturnType<typeof artsealWith>;
