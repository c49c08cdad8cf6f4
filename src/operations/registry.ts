import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { type Config, faultsForServing, settings } from '../config/config.ts';
import { openKeyRing } from '../config/master-key.ts';
import { providers } from '../config/payment-providers.ts';
import { sandboxCredentialsFile, sandboxCredentialsName } from '../config/sandbox-credentials.ts';
import { ConfigError, refuse } from '../config/settings.ts';
import type { Clock } from '../domain/clock.ts';
import { checkpointFileName, requiredOrigin } from '../evidence/log/publication.ts';
import { markFileName } from '../evidence/log/verification.ts';
import { createIssuance } from '../keys/issuance.ts';
import { createReplaceableKeyRing } from '../keys/key-ring.ts';
import { checkSealedSecrets } from '../keys/sealed-secrets.ts';
import { refuseChangeableByOthers } from '../lib/file-access.ts';
import { errorText } from '../lib/file-errors.ts';
import { DatabaseError } from '../store/engine/failure.ts';
import { createFolder } from '../store/sqlite/durable-files.ts';
import { lockFolder } from '../store/sqlite/folder-lock.ts';
import {
  databaseFile,
  databaseFiles,
  findLost,
  unfinishedRestoreName,
  withSqliteFiles,
} from '../store/sqlite/location.ts';
import { readMoveRecord } from '../store/sqlite/move-record.ts';
import { openThreadedStore } from '../store/sqlite/threaded-store.ts';
import { executorOf, type PostgresPlace, type Store, type StoreOptions } from '../store/store.ts';
import { removeServingRecord, servingRecordName } from './serving-record.ts';

/** The parts that work on the database, without a listener, as commands need them. */
export type Registry = Awaited<ReturnType<typeof openRegistry>>;

/**
 * Files that are only made beside a complete database. The master key is not among them: an operator may put it there
 * before the first start.
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
    // A timer must not keep the process alive. Connections and listeners do.
    const timer = setTimeout(callback, ms).unref();
    return () => clearTimeout(timer);
  },
};

/** The folder and the files that a deployment trusts, whether they exist yet or not. */
export function trustedFiles({ dataDir, masterKeys, namedFiles }: Config): string[] {
  const ownKeys = 'ownFile' in masterKeys ? [masterKeys.ownFile] : [];
  const named = [checkpointFileName, markFileName, servingRecordName].map((name) => join(dataDir, name));
  const own = [...named, sandboxCredentialsFile(dataDir), ...ownKeys];
  const simulated = providers
    .flatMap(({ ownFiles }) => ownFiles)
    .flatMap((name) => withSqliteFiles(join(dataDir, name)));
  return [...databaseFiles(dataDir), ...own, ...simulated, ...namedFiles];
}

/** The trusted files that no other user has to read. Certificates and checkpoints are public. */
export function confidentialFiles(config: Config): string[] {
  const shown = [...config.publicFiles, join(config.dataDir, checkpointFileName)];
  return trustedFiles(config).filter((file) => !shown.includes(file));
}

/** Options of `openRegistry` that few callers need. */
export interface RegistryOptions {
  readonly clock?: Clock | undefined;
  /** Whether the store works in this thread; true by default. */
  readonly isStoreInThisThread?: boolean | undefined;
  /** Whether it is opened by an instance, beside which others may serve the database; false by default. */
  readonly isForServing?: boolean;
  /** Whether it is opened although there may be secrets that no master key opens. */
  readonly isMasterKeyLost?: boolean;
}

/** How long a store in a thread of its own waits for a command that uses the folder, in milliseconds. */
const lockTimeoutMs = 10_000;

/** Opens the registry for a serving process. Throws ConfigError, and what `openRegistry` throws. */
export async function openForServing(
  config: Config,
  { clock, isStoreInThisThread = false }: Pick<RegistryOptions, 'clock' | 'isStoreInThisThread'> = {},
): Promise<Registry> {
  const faults = faultsForServing(config);
  if (faults.length > 0) throw new ConfigError(faults);
  await refuseWithoutOrigin(config);
  // A production on an empty folder is a mistake, such as a disk that was not mounted.
  const opening = config.environment === 'sandbox' ? 'EITHER' : 'EXISTING';
  return openRegistry(config, opening, { clock, isStoreInThisThread, isForServing: true });
}

/**
 * Throws ConfigError if the settings of a production have no origin of the log. Call it before the database is upgraded,
 * so that a start that fails changes nothing.
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
  database,
}: Config): Promise<string | undefined> {
  if (environment !== 'production' || logOrigin !== undefined) return undefined;
  if (database !== undefined) {
    const { readLogNames } = await import('../store/postgres/inspection.ts');
    return requiredOrigin(await readLogNames(database));
  }
  const { readLogNames } = await import('../store/sqlite/inspection.ts');
  return requiredOrigin(await readLogNames(dataDir));
}

/**
 * Opens the store and the parts that issue credentials. Throws FilesExposed if other users may change trusted files,
 * DatabaseError, and MasterKeyError if the master keys do not open the secrets of the store.
 */
export async function openRegistry(
  config: Config,
  opening: StoreOptions['opening'],
  {
    clock = systemClock,
    isStoreInThisThread = true,
    isForServing = false,
    isMasterKeyLost = false,
  }: RegistryOptions = {},
) {
  refuseChangeableByOthers(trustedFiles(config));
  const { environment, currency, dataDir } = config;
  const options = {
    ...{ dataDir, environment, currency, opening, openMark: servingRecordName, madeLater },
    ...(!isStoreInThisThread && { lockTimeoutMs }),
  };
  const store = await openStore(options, config.database, isStoreInThisThread, isForServing);
  try {
    const execute = executorOf(store);
    const isEmpty = !(await execute({ kind: 'HasCallers' }));
    const keyRing = createReplaceableKeyRing(openKeyRing(config.masterKeys, isEmpty));
    // That of a process that crashed: what it left was checked.
    removeServingRecord(dataDir);
    if (!isMasterKeyLost) await checkSealedSecrets(execute, keyRing, Math.floor(clock.nowMs() / 1000));
    return { store, execute, keyRing, issuance: createIssuance({ execute, keyRing, environment, clock }) };
  } catch (error) {
    await store.close();
    throw error;
  }
}

/**
 * Upgrades the store to this version; `keepsCopy` makes a copy of a database on SQLite before. Throws ConfigError, FilesExposed
 * and DatabaseError.
 */
export async function upgradeStore(config: Config, keepsCopy: boolean): Promise<void> {
  await refuseWithoutOrigin(config);
  refuseChangeableByOthers(trustedFiles(config));
  const { environment, currency, dataDir, database } = config;
  if (database !== undefined) {
    const { upgradeDatabase } = await import('../store/postgres/inspection.ts');
    await upgradeDatabase(database);
    return;
  }
  const { openDatabase } = await import('../store/sqlite/database.ts');
  const options = { dataDir, environment, currency, opening: 'EXISTING', madeLater } as const;
  openDatabase(options, { keepsCopy }).close();
}

/** Says which file shows that the database of a data folder is lost; undefined if it exists, or never did. */
export function findLostDatabase(dataDir: string): string | undefined {
  return findLost(databaseFile(dataDir), madeLater);
}

/** Opens the store. That on SQLite has its own thread in a server, so that the disk does not block the listeners. */
async function openStore(
  options: StoreOptions,
  place: PostgresPlace | undefined,
  isInThisThread: boolean,
  isForServing: boolean,
): Promise<Store> {
  if (place !== undefined) return openInFolder(place, options, !isForServing);
  // Loaded when needed: a store with its own thread loads its driver there.
  if (isInThisThread) {
    const { createSqliteStore } = await import('../store/sqlite/engine.ts');
    return createSqliteStore(options);
  }
  return openThreadedStore(options);
}

// A deployment on PostgreSQL keeps its other files in the data folder: the published checkpoint, the admin
// socket, and in a sandbox its credentials and its master key. As on SQLite, one process at a time uses the
// folder.

/**
 * Opens the store on PostgreSQL, and locks the data folder until it is closed. It creates the folder if it
 * may make the tables. Throws FolderInUse and DatabaseError.
 */
async function openInFolder(place: PostgresPlace, options: StoreOptions, isAlone: boolean): Promise<Store> {
  const { dataDir, opening, environment, currency, lockTimeoutMs } = options;
  if (opening !== 'EXISTING') createDataFolder(resolve(dataDir));
  const lock = lockExisting(dataDir, lockTimeoutMs);
  try {
    const file = databaseFile(dataDir);
    if (existsSync(file))
      throw new DatabaseError(
        `ARTSEAL_DATABASE_URL is set, and ${file} is there: run artseal move to move it to PostgreSQL, or unset ` +
          'ARTSEAL_DATABASE_URL to use it.',
      );
    if (readMoveRecord(dataDir) !== undefined) {
      const { settleStamp } = await import('../store/move/move.ts');
      await settleStamp(dataDir, place);
    }
    await refuseLost(place, options);
    const { openPostgresStore } = await import('../store/postgres/store.ts');
    const store = await openPostgresStore({ place, environment, currency, opening, isAlone });
    return {
      ...store,
      close: async () => {
        await store.close();
        lock.release();
      },
    };
  } catch (error) {
    lock.release();
    throw error;
  }
}

function createDataFolder(folder: string): void {
  try {
    createFolder(folder);
  } catch (error) {
    throw new DatabaseError(
      `${folder} cannot be used: ${errorText(error)}; ARTSEAL_DATA_DIR must name a folder that this user can write.`,
    );
  }
}

function lockExisting(dataDir: string, timeoutMs?: number) {
  if (!existsSync(dataDir))
    throw new DatabaseError(
      `there is no folder ${resolve(dataDir)}: set ARTSEAL_DATA_DIR to the folder of this deployment, ` +
        'or run artseal init.',
    );
  return lockFolder(resolve(dataDir), timeoutMs);
}

/** Throws DatabaseError if the database is empty and the folder belongs to another one. */
async function refuseLost(
  place: PostgresPlace,
  { dataDir, opening, madeLater = [] }: StoreOptions,
): Promise<void> {
  if (opening === 'EXISTING') return;
  const proof = madeLater.find((name) => existsSync(join(dataDir, name)));
  if (proof === undefined) return;
  const { isEmpty } = await import('../store/postgres/inspection.ts');
  if (await isEmpty(place))
    throw new DatabaseError(
      `the database of ARTSEAL_DATABASE_URL has no tables, but ${proof} is in ${resolve(dataDir)}, which ` +
        'belongs to another database: name that one, or use an empty folder.',
    );
}
