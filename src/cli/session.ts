import { once } from 'node:events';
import { connect } from 'node:net';
import { userInfo } from 'node:os';
import { text } from 'node:stream/consumers';
import { setTimeout as wait } from 'node:timers/promises';
import type { DescService } from '@bufbuild/protobuf';
import type { Client } from '@connectrpc/connect';
import { pageSize } from '../api/services/paging.ts';
import { openRefreshSocket, refreshed } from '../app/refresh-socket.ts';
import { type Config, readConfig, readDataDir, readTimeZone, unknownSettings } from '../config/config.ts';
import { type Actor, checkReason } from '../domain/audit-entry.ts';
import { type Calendar, createCalendar } from '../domain/calendar.ts';
import { utcTimestamp } from '../domain/utc.ts';
import { rejectViolations } from '../domain/violation.ts';
import { shownName } from '../lib/strict-json.ts';
import { openRegistry, type Registry, type RegistryOptions } from '../operations/registry.ts';
import { isServingRecordThere } from '../operations/serving-record.ts';
import { allOf, type Page, type PageQuery } from '../store/paging.ts';
import { isServed } from '../store/sqlite/serving-lock.ts';
import {
  type Action,
  type CommonFlags,
  exitCodes,
  readInstant,
  show,
  type Terminal,
  type Words,
} from './command.ts';
import {
  type Connection,
  type ConnectionOptions,
  clientOf,
  connect as connectToService,
} from './connection.ts';

/** Flags of the actions that call the service. */
export const callFlags: CommonFlags = {
  usage: '[--url URL]',
  details: [
    'Without --url the command calls the server that runs on ARTSEAL_DATA_DIR. If none runs, it does the work itself.',
    '--url https://HOST:PORT is the internal API of a remote server. It needs a token with the scope operate in ARTSEAL_TOKEN.',
    'ARTSEAL_CLIENT_CA_FILE, ARTSEAL_CLIENT_CERT_FILE and ARTSEAL_CLIENT_KEY_FILE are for its TLS.',
  ],
};

/** A connection to the service, for the duration of a command, and the words of the command line. */
export interface CallSession {
  readonly words: Words;
  readonly env: NodeJS.ProcessEnv;
  client<S extends DescService>(service: S): Client<S>;
  /** `--reason`, or an empty text. */
  readonly reason: string;
  /** Prints a value: as JSON with `--json`, otherwise as lines of text. */
  show(value: object, ...text: readonly string[]): void;
  /** Shows all items of a list, which is read page by page; `name` is their member in a page. */
  showAll<Name extends string, Item>(
    name: Name,
    read: ReadPage<Name, Item>,
    showItem: (item: Item, session: CallSession) => void,
  ): Promise<undefined>;
  print(line: string): void;
  printError(line: string): void;
}

/** The part of a list request that selects a page. */
type PageFields = { readonly pageSize: number; readonly pageToken: string };

/** Reads a page of a list, whose items are the member `Name`. */
type ReadPage<Name extends string, Item> = (
  page: PageFields,
) => Promise<{ readonly nextPageToken: string } & { readonly [Items in Name]: readonly Item[] }>;

/** An action that calls the service: of the server that runs on the data folder or at `--url`, or in this process. */
export const calls = (
  work: (session: CallSession) => Promise<number | undefined>,
  options?: ConnectionOptions,
): Pick<Action, 'common' | 'run'> => ({
  common: callFlags,
  run: (words, terminal) => withService(words, terminal, work, options),
});

/** Runs `work`, whose first call connects to the service, and returns its result once the connection is closed. */
export async function withService<Result>(
  words: Words,
  terminal: Terminal,
  work: (session: CallSession) => Promise<Result>,
  options?: ConnectionOptions,
): Promise<Result> {
  const { env, print, printError } = terminal;
  warnOfUnknown(terminal);
  let connecting: Promise<Connection> | undefined;
  const connection = () => {
    connecting ??= connectToService(words.text('url'), env, options);
    return connecting;
  };
  const session: CallSession = {
    ...{ words, env, print, printError, reason: words.text('reason') ?? '' },
    client: (service) => clientOf(service, connection),
    show: (value, ...lines) => show(words, terminal, value, ...lines),
    showAll: async (name, read, showItem) => {
      for await (const item of itemsOf(name, read)) showItem(item, session);
      return undefined;
    },
  };
  try {
    return await work(session);
  } finally {
    await (await connecting?.catch(() => undefined))?.close();
  }
}

/** A message that every response has. */
export function present<T>(message: T | undefined): T {
  if (message === undefined) throw new Error('The response is incomplete.');
  return message;
}

/** The word for a number of an enum; the number itself if this version does not know it. */
export function wordIn(numbers: Readonly<Record<string, number>>, value: number): string {
  return Object.keys(numbers).find((word) => numbers[word] === value) ?? String(value);
}

/** Yields the items of all pages. */
export async function* itemsOf<Name extends string, Item>(
  name: Name,
  read: ReadPage<Name, Item>,
): AsyncGenerator<Item> {
  let pageToken = '';
  do {
    const page = await read({ pageSize: pageSize.max, pageToken });
    yield* page[name];
    pageToken = page.nextPageToken;
  } while (pageToken !== '');
}

/** `--since` as the service takes it; undefined without the flag. Throws UsageError. */
export function sinceOf({ words, env }: Pick<CallSession, 'words' | 'env'>): string | undefined {
  const sinceS = readInstant(words, 'since', 'BEFORE', readTimeZone(env));
  return sinceS === undefined ? undefined : utcTimestamp(Math.max(0, sinceS) * 1_000);
}

function warnOfUnknown({ env, printError }: Terminal): void {
  for (const variable of unknownSettings(env))
    printError(`artseal: ${variable} is not a setting and has no effect; artseal help settings lists them`);
}

/** The open database of the deployment, for the duration of a command, and the words of the command line. */
export interface Session extends Registry {
  readonly words: Words;
  readonly config: Config;
  readonly calendar: Calendar;
  /** Formats Unix seconds as RFC 3339 in the business time zone. */
  timestamp(atS: number): string;
  /** The user who runs the command, with the time and `--reason`. Throws VALIDATION_FAILED for a wrong reason. */
  actor(): Actor;
  /** Prints a value: as JSON with `--json`, otherwise as lines of text. */
  show(value: object, ...text: readonly string[]): void;
  /** Shows all items of a list, which is read page by page. */
  showAll<Item>(
    list: (page: PageQuery) => Promise<Page<Item>>,
    showItem: (item: Item, session: Session) => void,
  ): Promise<undefined>;
  print(line: string): void;
}

/** What is done on the open database. Returns the exit code if it is not `done`. */
type Work = (session: Session) => Promise<number | undefined>;

/** The `run` of an action that reads the registry. */
export const reads =
  (work: Work, options?: RegistryOptions): Action['run'] =>
  (words, terminal) =>
    withRegistry(words, terminal, work, options);

/** The `run` of an action that changes the registry. */
export const changes =
  (work: Work): Action['run'] =>
  (words, terminal) =>
    changeRegistry(words, terminal, work);

/** Opens the database of the deployment and runs `work`. */
export async function withRegistry(
  words: Words,
  terminal: Terminal,
  work: Work,
  options?: RegistryOptions,
): Promise<number | undefined> {
  const { env, print } = terminal;
  warnOfUnknown(terminal);
  const config = readConfig(env);
  const registry = await openRegistry(config, 'EXISTING', options);
  const calendar = createCalendar(config.timeZone);
  try {
    const session: Session = {
      ...{ ...registry, config, calendar, words, print },
      timestamp: (atS) => calendar.timestamp(atS * 1_000),
      actor: () => localActor(words, terminal),
      show: (value, ...lines) => show(words, terminal, value, ...lines),
      showAll: async (list, showItem) => {
        for await (const item of allOf(list)) showItem(item, session);
      },
    };
    return await work(session);
  } finally {
    await registry.store.close();
  }
}

/**
 * Opens the database of the deployment, changes it by `work`, and waits until a running server has read the change. Returns
 * an exit code if the server does not.
 */
export async function changeRegistry(
  words: Words,
  terminal: Terminal,
  work: Work,
): Promise<number | undefined> {
  const code = await withRegistry(words, terminal, work);
  if (await waitForServer(readDataDir(terminal.env))) return code;
  terminal.printError(
    `artseal: the change is stored, but the running server has not read it within ${serverLimitMs / 1_000} seconds: see its log and /readyz, and restart it if it does not recover`,
  );
  return exitCodes.failed;
}

/** The user of the machine, with the time and `--reason`. Throws VALIDATION_FAILED for a wrong reason. */
export function localActor(words: Words, { env }: Pick<Terminal, 'env'>): Actor {
  const reason = words.text('reason');
  rejectViolations(checkReason(reason ?? ''));
  return userActor(env, reason);
}

/**
 * The user who runs this process, or who called sudo or artseal-admin according to the environment. Anybody who can write to
 * the database can set that environment, so the name is not verified; it is kept on one line.
 */
export function userActor(env: NodeJS.ProcessEnv, reason: string | undefined): Actor {
  const { SUDO_USER: name = userName(), SUDO_UID: uid = process.getuid?.() } = env;
  const actor = `user ${shownName(name)} (${shownName(`${uid ?? 'no uid'}`)})`;
  return { actor, atS: nowS(), reason };
}

/** In a container a user may have no name. */
function userName(): string {
  try {
    return userInfo().username;
  } catch {
    return 'unknown';
  }
}

/** The time of the machine, Unix seconds. */
export const nowS = (): number => Math.floor(Date.now() / 1_000);

/** How long a command waits for the server, in milliseconds. */
export const serverLimitMs = 10_000;
/** How soon an unreachable server is tried again, in milliseconds. */
const retryMs = 50;

/** Waits until the server of a data folder, if one runs, has read all changes. Returns false after `serverLimitMs`. */
async function waitForServer(dataDir: string): Promise<boolean> {
  const signal = AbortSignal.timeout(serverLimitMs);
  while (isServed(dataDir)) {
    if (await isRefreshed(dataDir, signal)) return true;
    // Without a record the server starts or stops. It reads all changes before it is ready.
    if (!isServingRecordThere(dataDir)) return true;
    if (signal.aborted) return false;
    await wait(retryMs);
  }
  return true;
}

async function isRefreshed(dataDir: string, signal: AbortSignal): Promise<boolean> {
  using opened = openRefreshSocket(dataDir);
  const socket = connect({ path: opened.path, signal });
  try {
    await once(socket, 'connect');
    return (await text(socket)) === refreshed;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}
