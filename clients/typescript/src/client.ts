import type { components, operations } from './openapi.ts';
import { routes } from './routes.ts';
import { type ClientOptions, createTransport } from './transport.ts';

export type { operations } from './openapi.ts';

/** The schemas of openapi.yaml, such as `Schemas['Filing']`. */
export type Schemas = components['schemas'];

type Members<Type> = [Type] extends [undefined] ? unknown : NonNullable<Type>;

type Body<Id extends keyof operations> = operations[Id] extends {
  requestBody: { content: { 'application/json': infer Content } };
}
  ? { readonly body: Content }
  : unknown;

/** The parameters of the path and the query by name, the body, and what every call takes. */
export type Input<Id extends keyof operations> = Members<operations[Id]['parameters']['path']> &
  Members<operations[Id]['parameters']['query']> &
  Body<Id> & {
    /** Makes the call run once, however often it is sent. By default, a call that writes gets a key of its own. */
    readonly idempotencyKey?: string;
    /** Cancels the call. It may have been carried out. */
    readonly signal?: AbortSignal;
  };

/** The response of an operation. */
export type Output<Id extends keyof operations> = operations[Id] extends {
  responses: { 200: { content: infer Content } };
}
  ? Content[keyof Content]
  : never;

type Operation<Id extends keyof operations> =
  Record<never, never> extends Input<Id>
    ? (input?: Input<Id>) => Promise<Output<Id>>
    : (input: Input<Id>) => Promise<Output<Id>>;

type Operations = { readonly [Id in keyof operations]: Operation<Id> };

/** Iterators over lists. They call for the next page when the loop gets there. */
interface Iterators {
  /** Your filings, newest first. */
  eachFiling(input?: Omit<Input<'listFilings'>, 'pageToken'>): AsyncGenerator<Schemas['Filing']>;
  /** Your orders, newest first. */
  eachEscrow(
    input?: Omit<Input<'listEscrows'>, 'pageToken'>,
  ): AsyncGenerator<Output<'listEscrows'>['escrows'][number]>;
  /**
   * The events after a cursor, oldest first. Store the `sequence` of the last event that you handled: it is the cursor `after`
   * of the next loop. Ends when nothing has happened for `waitSeconds`, which is 0 by default.
   */
  eachEvent(input?: Input<'listEvents'>): AsyncGenerator<Schemas['Event']>;
}

/** The operations of the API, by their ids in openapi.yaml. They reject with `ArtsealError`. */
export type Client = Operations & Iterators;

/** Returns a client. It keeps the difference to the clock of the server, so create one and share it. Throws a TypeError. */
export function createClient(options: ClientOptions): Client {
  const send = createTransport(options);
  const calls = Object.entries(routes).map(([id, [method, path, kind]]) => {
    const call = ({ body, idempotencyKey, signal, ...parameters }: Record<string, unknown> = {}) => {
      const target = targetOf(path, parameters);
      return send({
        ...{ method, target, body, isText: kind === 'text' },
        idempotencyKey: idempotencyKey as string | undefined,
        signal: signal as AbortSignal | undefined,
      });
    };
    return [id, async (input?: Record<string, unknown>) => call(input)] as const;
  });
  const client = Object.fromEntries(calls) as unknown as Operations;
  return {
    ...client,
    eachFiling: (input = {}) =>
      eachItem((pageToken) => client.listFilings({ ...input, pageToken }), 'filings'),
    eachEscrow: (input = {}) =>
      eachItem((pageToken) => client.listEscrows({ ...input, pageToken }), 'escrows'),
    eachEvent: (input = {}) => eachEvent(client, input),
  };
}

async function* eachItem<Name extends string, Item>(
  list: (pageToken: string) => Promise<{ readonly nextPageToken: string } & { [_ in Name]: Item[] }>,
  name: Name,
): AsyncGenerator<Item> {
  let pageToken = '';
  do {
    const page = await list(pageToken);
    yield* page[name];
    pageToken = page.nextPageToken;
  } while (pageToken !== '');
}

async function* eachEvent(client: Operations, input: Input<'listEvents'>): AsyncGenerator<Schemas['Event']> {
  for (let cursor = {}; ; ) {
    const { events, next } = await client.listEvents({ ...input, ...cursor });
    if (events.length === 0) return;
    yield* events;
    cursor = { after: next };
  }
}

/** Puts the parameters of the path where they belong, and the others into the query. */
function targetOf(path: string, parameters: Readonly<Record<string, unknown>>): string {
  const names = Array.from(path.matchAll(/\{(\w+)\}/g), ([, name = '']) => name);
  const parts = names.reduce(
    (rest, name) => rest.replace(`{${name}}`, () => encodeURIComponent(String(parameters[name] ?? ''))),
    path,
  );
  const query = Object.entries(parameters).filter(
    ([name, value]) => !names.includes(name) && value !== undefined && value !== '',
  );
  const search = new URLSearchParams(query.map(([name, value]) => [name, String(value)]));
  return query.length === 0 ? parts : `${parts}?${search}`;
}
