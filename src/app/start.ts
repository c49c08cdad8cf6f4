import { randomBytes, randomUUIDv7 } from 'node:crypto';
import { findNonceGap } from '../api/authentication.ts';
import type { BackupAccess, ProcessParts } from '../api/services/dependencies.ts';
import { type Config, settings } from '../config/config.ts';
import { refuse } from '../config/settings.ts';
import { createCalendar } from '../domain/calendar.ts';
import { type BusinessClock, type Clock, createBusinessClock } from '../domain/clock.ts';
import type { Finding } from '../domain/finding.ts';
import { createCheckpointFile, madeUpOrigin } from '../evidence/log/publication.ts';
import { createSigner } from '../evidence/log/signer.ts';
import { startTimeStamping } from '../evidence/log/time-stamping.ts';
import { createLogVerification } from '../evidence/log/verification.ts';
import { createWitnesses } from '../evidence/log/witness.ts';
import { watchFilingClock } from '../health/clock-part.ts';
import { watchProvider } from '../health/provider-watch.ts';
import { watchStore } from '../health/store-part.ts';
import { readableByOthers } from '../lib/file-access.ts';
import type { Logger } from '../lib/log.ts';
import { type BackupCommands, createBackupCommands } from '../operations/backup/commands.ts';
import { createBackupPlaces } from '../operations/backup/places.ts';
import { type ChildCommands, createChildCommands } from '../operations/child-commands.ts';
import { joinInstances } from '../operations/instances.ts';
import { confidentialFiles, type Registry } from '../operations/registry.ts';
import type { PaymentProvider } from '../payments/provider.ts';
import { type ReconciliationLimits, reconciliationLimits } from '../payments/reconciliation/limits.ts';
import type { Notifications } from '../payments/reconciliation/notifications.ts';
import { type Execute, leads, type Store } from '../store/store.ts';
import { createProviderMetrics } from '../telemetry/metrics/provider-metrics.ts';
import type { Traces } from '../telemetry/traces/traces.ts';
import { createService } from './service.ts';

/** What tests replace: time, timeouts, the provider, and the thread of the store and child processes, which take long to start. */
export interface Simulated {
  readonly clock?: Clock;
  readonly provider?: PaymentProvider;
  readonly limits?: Partial<ReconciliationLimits>;
  /** Whether the store works in this thread. */
  readonly isStoreInThisThread?: boolean;
  readonly commands?: ChildCommands;
}

/** What each step of a start works with. */
export interface Start {
  readonly config: Config;
  readonly log: Logger;
  readonly clock: Clock;
  readonly simulated: Simulated;
  readonly traces: Traces | undefined;
  /** Closes what was opened, in the reverse order. */
  readonly opened: AsyncDisposableStack;
}

/** The service, and what it works with. No listener is open yet. */
export type Core = Awaited<ReturnType<typeof openCore>>;

/** Opens all that calls work with. */
export async function openCore(
  start: Start,
  registry: Registry,
  running: Pick<ProcessParts, 'reload' | 'readOverview'>,
) {
  const { config, clock, log, opened } = start;
  const { commands = createChildCommands() } = start.simulated;
  const { execute, keyRing } = registry;
  const store = await beginServing(start, registry);
  const { publication, findRollback } = await publishLog(start, registry);
  const logVerification = createLogVerification({ ...registry, dataDir: config.dataDir, clock, log });
  opened.defer(logVerification.stop);
  const nonceGap = await findNonceGap(execute, clock, log);
  const businessClock = await openBusinessClock(config, execute, clock);
  let notifications: Notifications | undefined;
  const business = { ...start, clock: businessClock };
  const { observed: provider, ...payments } = await openProvider(business, async (notification) => {
    if (notifications === undefined) throw new Error('The service has not started yet.');
    await notifications.accept(notification);
  });
  const filingClock = await watchFilingClock({ execute, clock, log });
  opened.defer(filingClock.stop);
  const calendar = createCalendar(config.timeZone);
  opened.defer(commands.stop);
  const backups = createBackupCommands(commands, config);
  const service = createService({
    ...{ store, keyRing, clock, businessClock, calendar, publication, provider, log },
    ...{ filingClock, ...running },
    isRolledBack: () => (publication.rollback() ?? findRollback()) !== undefined,
    ...configuredParts(config, commands, backups, start.simulated.limits),
  });
  opened.defer(service.stop);
  notifications = service.notifications;
  const health = { logVerification, nonceGap, payments, filingClock, findRollback };
  return { store, registry, businessClock, calendar, publication, service, backups, ...health };
}

/** Whether operators may advance the clock: a provider that moves money, also test money, keeps its own time. */
const isClockAdvanceable = ({ environment, provider }: Config): boolean =>
  environment === 'sandbox' && !provider.movesMoney;

/** Opens the business clock, as far ahead as the store has it. Throws ConfigError if the provider cannot follow. */
export async function openBusinessClock(
  config: Config,
  execute: Execute,
  real: Clock,
): Promise<BusinessClock> {
  const { aheadS } = await execute({ kind: 'ReadLogClock' });
  if (aheadS > 0 && !isClockAdvanceable(config))
    refuse(settings.provider, 'must be simulated: the clock of this sandbox was advanced');
  const clock = createBusinessClock(real);
  clock.setAhead(aheadS);
  return clock;
}

/** What a service takes from the settings, whether it has listeners or not. */
export function configuredParts(
  config: Config,
  commands: ChildCommands,
  backups: BackupCommands,
  limits: Simulated['limits'] = {},
) {
  return {
    environment: config.environment,
    isClockAdvanceable: isClockAdvanceable(config),
    partyRules: config.provider.parties,
    currency: config.currency,
    random: Math.random,
    newInstructionId: randomUUIDv7,
    webhooks: config.webhooks,
    mail: config.mail,
    publicUrl: config.publicUrl,
    backups: backupAccess(config, backups),
    check: (signal: AbortSignal) =>
      commands.run({ words: ['check', '--json'], env: config.variables }, signal) as AsyncIterable<Finding>,
    limits: { ...reconciliationLimits, buyerDeadlineMs: config.buyerDeadlineMs, ...limits },
  };
}

/** Which backups callers may take. */
function backupAccess({ backups, variables }: Config, { run }: BackupCommands): BackupAccess {
  // systemd sets it to the folders of StateDirectory=.
  const serviceFolders = variables.STATE_DIRECTORY?.split(':');
  return { run, places: createBackupPlaces(backups.folder, serviceFolders), keepMin: backups.keep };
}

/** Takes the store over from an earlier process. Returns the traced store. */
async function beginServing(
  { config, log, clock, traces, opened }: Start,
  registry: Registry,
): Promise<Store> {
  const store = traces?.observeStore(registry.store) ?? registry.store;
  opened.defer(() => store.close());
  for (const file of readableByOthers(confidentialFiles(config)))
    log.warn(file, 'every user of this machine may read this file or folder: chmod o-r');
  opened.defer(watchStore(store, clock, log));
  const { checkedMs: ms, upgrade } = store;
  if (upgrade !== undefined) log.info(upgrade, 'the database was upgraded to the schema of this version');
  if (ms !== undefined)
    log.warn(
      { ms },
      'the database was not closed when it was served last, or was found damaged: it was checked, and it is sound',
    );
  await joinInstances(config, registry.keyRing, registry.execute);
  await registry.execute({ kind: 'UseProvider', name: config.provider.name });
  return store;
}

/** Signs the evidence log and its growth, with witnesses and time stamps if the settings name any. Closing signs once more. */
async function publishLog({ config, clock, log, opened }: Start, { execute, keyRing, store }: Registry) {
  const { logWitnesses, logTimeStamps } = config;
  const refuseRolledBack = logWitnesses?.refuseRolledBack;
  const witnesses = logWitnesses && createWitnesses({ ...logWitnesses, execute, clock, log });
  opened.defer(() => witnesses?.stop());
  const publication = createSigner({
    ...{ execute, instances: store.instances, keyRing, witnesses, clock, log },
    origin: config.logOrigin,
    madeUpOrigin: madeUpOrigin(store),
    file: createCheckpointFile(config.dataDir),
    // The first filing must not take a number that is in the log of the witnesses.
    awaitsWitnesses: refuseRolledBack,
  });
  await publication.start();
  opened.defer(publication.stop);
  if (logTimeStamps !== undefined) {
    const parts = { terms: logTimeStamps, publication, execute, randomBytes, clock, log };
    const stamping = { ...parts, leads: () => leads(store) };
    opened.defer(startTimeStamping(stamping).stop);
  }
  return {
    publication,
    /** Returns why filings are rejected: a witness finds the log rolled back, and the settings say to reject then. */
    findRollback: () => (refuseRolledBack ? witnesses?.rolledBack()[0] : undefined),
  };
}

/** Opens the provider and starts to check its credentials. Requests through `observed` are counted and traced. */
async function openProvider(
  { config, log, clock, simulated, traces, opened }: Start,
  notify: Notifications['accept'],
) {
  const { provider: kind, providerSettings, dataDir } = config;
  const provider = simulated.provider ?? (await kind.open(providerSettings, { dataDir, clock, notify }));
  opened.defer(() => provider.close());
  const watch = watchProvider({ provider, name: kind.name, clock, random: Math.random, log });
  opened.defer(watch.stop);
  const metrics = createProviderMetrics();
  const counted = metrics.observe(provider);
  return { watch, metrics, observed: traces?.observeProvider(counted) ?? counted };
}
