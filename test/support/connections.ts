import type { TestContext } from 'node:test';
import { artsealWith } from './artseal.ts';
import { type ServiceOptions, startService } from './service.ts';
import { temporaryFolder } from './temporary-folder.ts';

/** How a command reaches the services. */
export const connections = ['a running server', 'a stopped folder', 'a remote server'] as const;

/** One of them. */
export type Connection = (typeof connections)[number];

/** The commands of a registry, over a connection: of the folder of an earlier service, or of a new one, which is empty. */
export async function commandsOver(
  t: TestContext,
  connection: Connection,
  { env = {}, dataDir: earlier, ...options }: ServiceOptions = {},
) {
  const dataDir = earlier ?? temporaryFolder(t);
  const local = { ARTSEAL_DATA_DIR: dataDir, ...env };
  if (connection === 'a stopped folder') {
    if (earlier === undefined) await artsealWith(local).text('init');
    return artsealWith(local);
  }
  const service = await startService(t, { env, dataDir, ...options });
  if (connection === 'a running server') return artsealWith({ ARTSEAL_DATA_DIR: dataDir });
  return artsealWith({ ARTSEAL_TOKEN: await service.token(true) }, ['--url', service.internalUrl]);
}

/** The commands of `artsealWith`. */
export type Commands = ReturnType<typeof artsealWith>;
