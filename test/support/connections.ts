import type { TestContext } from 'node:test';
import { artsealWith } from './artseal.ts';
import { type ServiceOptions, startService, type TestService } from './service.ts';
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
  let started: Promise<TestService> | undefined;
  /** Returns the service that answers; that of a stopped folder is started. */
  const service = () => {
    started ??= startService(t, { env, dataDir, ...options });
    return started;
  };
  if (connection === 'a stopped folder') {
    const artseal = artsealWith({ ARTSEAL_DATA_DIR: dataDir, ...env });
    if (earlier === undefined) await artseal.text('init');
    return { ...artseal, service };
  }
  const { internalUrl, token } = await service();
  if (connection === 'a running server') return { ...artsealWith({ ARTSEAL_DATA_DIR: dataDir }), service };
  return { ...artsealWith({ ARTSEAL_TOKEN: await token(true) }, ['--url', internalUrl]), service };
}
