import { join } from 'node:path';
import { type Config, faultsForServing, settings } from '../config/config.ts';
import { openKeyRing } from '../config/master-key.ts';
import { providers } from '../config/payment-providers.ts';
import { sandboxCredentialsFile, sandboxCredentialsName } from '../config/sandbox-credentials.ts';
import { ConfigError, refuse } from '../config/settings.ts';
import type { Clock } from '../domain/clock.ts';
import { checkpointFile, checkpointFileName } from '../evidence/log/checkpoint-file.ts';
import { requiredOrigin } from '../evidence/log/origin.ts';
import { markFileName } from '../evidence/log/verification.ts';
import { createIssuance, type Issuance } from '../keys/issuance.ts';
import { createReplaceableKeyRing, type ReplaceableKeyRing } from '../keys/key-ring.ts';
import { checkSealedSecrets } from '../keys/sealed-secrets.ts';
import { refuseChangeableByOthers } from '../lib/file-access.ts';
import { findLost } from '../store/sqlite/leftovers.ts';
import {
  databaseFile,
  databaseFiles,
  servingLockName,
  unfinishedRestoreName,
  withSqliteFiles,
} from '../store/sqlite/location.ts';
import { type Execute, executorOf, type Store, type StoreOptions } from '../store/store.ts';
import { isServingRecordThere, servingRecordName } from './serving-record.ts';

/** The parts that work on the database, without a listener: all that `artseal key` and `artseal token` need. */
export interface Registry {
  readonly store: Store;
  /** Carries out commands on the store. */
  readonly execute: Execute;
  readonly keyRing: ReplaceableKeyRing;
  readonly issuance: Issuance;
}

/**
 * What is only made beside a complete database. A master key is not among them: an operator may put one there before the
 * first start.
 */
const madeLater = [
  unfinishedRestoreName,
  sandboxCredentialsName,
  ...providers.flatMap(({ ownFiles }) => ownFiles),
  checkpointFileName,
  markFileName,
];

/** The system's clock. */
export const systemClock: Clock = {
  nowMs: () => Date.now(),
  monotonicMs: () => performance.now(),
  after: (ms, callback) => {
    // What waits keeps a connection or a listener open; time alone must not keep the process alive.
    const timer = setTimeout(callback, ms).unref();
    return () => clearTimeout(timer);
  },
};

/** The folder and the files that a deployment trusts, whether they are there yet or not. */
export function trustedFiles({ dataDir, masterKeys, namedFiles }: Config): string[] {
  const ownKeys = 'ownFile' in masterKeys ? [masterKeys.ownFile] : [];
  const [mark, record] = [join(dataDir, markFileName), join(dataDir, servingRecordName)];
  const own = [checkpointFile(dataDir), sandboxCredentialsFile(dataDir), mark, record, ...ownKeys];
  const simulated = providers
    .flatMap(({ ownFiles }) => ownFiles)
    .flatMap((name) => withSqliteFiles(join(dataDir, name)));
  return [...databaseFiles(dataDir), ...own, ...simulated, ...namedFiles];
}

/** Those among them that nobody else has to read: certificates, checkpoints and the like are shown to everybody anyway. */
export function confidentialFiles(config: Config): string[] {
  const shown = [...config.publicFiles, checkpointFile(config.dataDir)];
  return trustedFiles(config).filter((file) => !shown.includes(file));
}

/** How a process that takes calls opens the store. */
export interface Serving {
  readonly clock?: Clock | undefined;
  /** Whether the store works in this thread; in one of its own if not given. */
  readonly isStoreInThisThread?: boolean | undefined;
}

/** Opens what a process that takes calls needs. Throws ConfigError, and what `openRegistry` throws. */
export async function openForServing(config: Config, serving: Serving = {}): Promise<Registry> {
  const faults = faultsForServing(config);
  if (faults.length > 0) throw new ConfigError(faults);
  await refuseWithoutOrigin(config);
  // A production on an empty folder is a mistake, such as a disk that was not mounted.
  const opening = config.environment === 'sandbox' ? 'EITHER' : 'EXISTING';
  return openRegistry(config, opening, { clock: serving.clock, serving });
}

/**
 * Throws ConfigError if serving needs the origin of the log in the settings and it is not there. Call it before the database is
 * upgraded, which keeps the older version from opening it.
 */
async function refuseWithoutOrigin(config: Config): Promise<void> {
  const rule = await missingOrigin(config);
  if (rule !== undefined) refuse(settings.logOrigin, rule);
}

/** The rule for the origin of the log if it is missing in the settings; undefined if not. Throws DatabaseError. */
export async function missingOrigin({
  environment,
  logOrigin,
  dataDir,
}: Config): Promise<string | undefined> {
  if (environment !== 'production' || logOrigin !== undefined) return undefined;
  const { readLogNames } = await import('../store/sqlite/inspection.ts');
  return requiredOrigin(readLogNames(dataDir));
}

/** How a registry is opened otherwise than for a command like any other. */
export interface RegistryOptions {
  readonly clock?: Clock | undefined;
  /** Set for a process that takes calls. */
  readonly serving?: Serving | undefined;
  /** Whether it is opened although there may be secrets that do not open. */
  readonly isMasterKeyLost?: boolean;
}

/**
 * Opens the store and what issues credentials into it. Throws FilesExposed if other users may change what is trusted,
 * DatabaseError, and MasterKeyError if the secrets in the store do not open.
 */
export async function openRegistry(
  config: Config,
  opening: StoreOptions['opening'],
  { clock = systemClock, serving, isMasterKeyLost = false }: RegistryOptions = {},
): Promise<Registry> {
  refuseChangeableByOthers(trustedFiles(config));
  const { environment, currency, dataDir } = config;
  const isServing = serving !== undefined;
  const wasCutOff = isServing && isServingRecordThere(dataDir);
  const options = { dataDir, environment, currency, opening, serving: isServing, wasCutOff, madeLater };
  const store = await openStore(options, serving === undefined || serving.isStoreInThisThread === true);
  try {
    const execute = executorOf(store);
    const isEmpty = !(await execute({ kind: 'HasCallers' }));
    const keyRing = createReplaceableKeyRing(openKeyRing(config.masterKeys, isEmpty));
    if (!isMasterKeyLost) await checkSealedSecrets(execute, keyRing, Math.floor(clock.nowMs() / 1000));
    return {
      store,
      execute,
      keyRing,
      issuance: createIssuance({ execute, keyRing, environment, clock }),
    };
  } catch (error) {
    await store.close();
    throw error;
  }
}

/** Brings the store to this version; `keepsCopy` if a copy is made before. Throws ConfigError, FilesExposed and DatabaseError. */
export async function upgradeStore(config: Config, keepsCopy: boolean): Promise<void> {
  await refuseWithoutOrigin(config);
  refuseChangeableByOthers(trustedFiles(config));
  const { environment, currency, dataDir } = config;
  const { openDatabase } = await import('../store/sqlite/database.ts');
  const options = { dataDir, environment, currency, opening: 'EXISTING', madeLater } as const;
  openDatabase(options, { keepsCopy }).$client.close();
}

/** What is wrong if the database of a data folder is gone, by what else is there; undefined if it is there, or never was. */
export function findLostDatabase(dataDir: string): string | undefined {
  return findLost(databaseFile(dataDir), [...madeLater, servingLockName]);
}

/** Opens the store; in a thread of its own neither the disk nor another process holds up the doors. */
async function openStore(options: StoreOptions, isInThisThread: boolean): Promise<Store> {
  // Loaded when needed: where the store has a thread of its own, its driver is loaded there.
  if (isInThisThread) {
    const { createSqliteStore } = await import('../store/sqlite/engine.ts');
    return createSqliteStore(options);
  }
  const { openThreadedStore } = await import('../store/sqlite/threaded-store.ts');
  return openThreadedStore(options);
}
