import { identifyLocal, userHeader } from '../api/operation.ts';
import { createCalls } from '../api/pipeline.ts';
import type { Config } from '../config/config.ts';
import { createCalendar } from '../domain/calendar.ts';
import { unavailable } from '../domain/reason.ts';
import { createCheckpointFile, madeUpOrigin } from '../evidence/log/publication.ts';
import { createSigner } from '../evidence/log/signer.ts';
import { createInMemoryTransport } from '../http/connect/typed-calls.ts';
import { silentLog } from '../lib/log.ts';
import { createBackupCommands } from '../operations/backup/commands.ts';
import { createChildCommands } from '../operations/child-commands.ts';
import { openRegistry, type RegistryOptions, systemClock } from '../operations/registry.ts';
import { createService } from './service.ts';
import { configuredParts, openBusinessClock } from './start.ts';

/**
 * Opens the services of a data folder in this process, without listeners and without background work: what is due is done when
 * the server starts. Other processes cannot use the folder until it is closed. Throws FolderInUse, and what `openRegistry` throws.
 */
export async function openInProcess(
  config: Config,
  options: Pick<RegistryOptions, 'isMasterKeyLost'>,
  interceptors: Parameters<typeof createInMemoryTransport>[1],
) {
  await using opened = new AsyncDisposableStack();
  const clock = systemClock;
  const registry = await openRegistry(config, 'EXISTING', options);
  const { store, execute, keyRing } = registry;
  opened.defer(() => store.close());
  const { dataDir } = config;
  const businessClock = await openBusinessClock(config, execute, clock);
  const provider = await config.provider.open(config.providerSettings, { dataDir, clock: businessClock });
  opened.defer(() => provider.close());
  const calendar = createCalendar(config.timeZone);
  const commands = createChildCommands();
  opened.defer(commands.stop);
  const service = createService({
    ...{ store, keyRing, clock, businessClock, calendar, provider, log: silentLog },
    ...configuredParts(config, commands, createBackupCommands(commands, config)),
    publication: createSigner({
      ...{ execute, keyRing, clock, log: silentLog },
      ...{ origin: config.logOrigin, madeUpOrigin: madeUpOrigin(store) },
      file: createCheckpointFile(dataDir),
    }),
    filingClock: { setByS: () => 0, refresh: async () => {} },
    isRolledBack: () => false,
    reload: async () => [],
    readOverview: async () => {
      throw unavailable('No server runs, so there is nothing to show.');
    },
  });
  opened.defer(service.stop);
  const { dispatcher } = service;
  const { aheadMs } = businessClock;
  const calls = createCalls({ store, keyRing, clock, aheadMs, calendar, dispatcher });
  const transport = createInMemoryTransport(
    {
      calls,
      services: dispatcher.services,
      identify: (header) => identifyLocal(header(userHeader)),
      readiness: { check: async () => [], onChange: () => () => {} },
      draining: new AbortController().signal,
    },
    interceptors,
  );
  const running = opened.move();
  return { transport, close: () => running.disposeAsync() };
}
