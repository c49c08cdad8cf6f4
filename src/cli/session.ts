import type { DescService } from '@bufbuild/protobuf';
import type { Client } from '@connectrpc/connect';
import { pageSize } from '../api/services/paging.ts';
import { readTimeZone, unknownSettings } from '../config/config.ts';
import { utcTimestamp } from '../domain/utc.ts';
import {
  type Action,
  type CommonFlags,
  type Output,
  readInstant,
  type Terminal,
  type Words,
} from './command.ts';
import { type Connection, type ConnectionOptions, clientOf, connect } from './connection.ts';

/** Flags of the actions that call the service. */
export const callFlags: CommonFlags = {
  usage: '[--url URL]',
  details: [
    'Without --url, the command calls the server that runs on ARTSEAL_DATA_DIR. If none runs, it opens that folder itself.',
    '--url https://HOST:PORT is the internal API of a remote server. It needs a token with the scope operate in ARTSEAL_TOKEN.',
    'ARTSEAL_CLIENT_CA_FILE, ARTSEAL_CLIENT_CERT_FILE and ARTSEAL_CLIENT_KEY_FILE name PEM files for its TLS.',
  ],
};

/** A connection to the service, for the duration of a command, and the words of the command line. */
export interface CallSession extends Omit<Output, 'showProgress'> {
  readonly words: Words;
  client<S extends DescService>(service: S): Client<S>;
  /** `--reason`, or an empty text. */
  readonly reason: string;
  /** Shows all items of a list, which is read page by page; `name` is their member in a page. */
  showAll<Name extends string, Item>(
    name: Name,
    read: ReadPage<Name, Item>,
    showItem: (item: Item, session: CallSession) => void,
  ): Promise<undefined>;
}

/** The part of a list request that selects a page. */
export type PageFields = { readonly pageSize: number; readonly pageToken: string };

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
  terminal: Output,
  work: (session: CallSession) => Promise<Result>,
  options?: ConnectionOptions,
): Promise<Result> {
  warnOfUnknown(terminal);
  let connecting: Promise<Connection> | undefined;
  const connection = () => {
    connecting ??= connect(words.text('url'), terminal.env, options);
    return connecting;
  };
  const session: CallSession = {
    ...{ ...terminal, words, reason: words.text('reason') ?? '' },
    client: (service) => clientOf(service, connection),
    showAll: async (name, read, showItem) => {
      for await (const item of itemsOf(name, read)) showItem(item, session);
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

/** Warns of variables that look like settings and are none. */
export function warnOfUnknown({ env, printError }: Terminal): void {
  for (const variable of unknownSettings(env))
    printError(`artseal: ${variable} is not a setting and has no effect; artseal help settings lists them`);
}
