import { randomBytes } from 'node:crypto';
import { createCoreStore } from '../engine/core-store.ts';
import { DatabaseError } from '../engine/failure.ts';
import type { PostgresPlace, Store, StoreOptions } from '../store.ts';
import { openCore } from './core.ts';
import type { Queries } from './leaf-rows.ts';
import { type Line, openLine, randomId } from './line.ts';
import { rejectUnlessMachineFault } from './postgres-errors.ts';
import { refuseWithoutGrants } from './roles.ts';
import { migrate, refuseOtherSchema, type Session, schemaOf } from './upgrade.ts';

/** Options to open a store on PostgreSQL with. */
export type PostgresOptions = Pick<StoreOptions, 'environment' | 'currency' | 'opening'> & {
  readonly place: PostgresPlace;
  /** Whether no other process may use the database meanwhile. */
  readonly isAlone?: boolean;
};

/** Opens the store on PostgreSQL. Throws DatabaseError. */
export async function openPostgresStore({ place, isAlone, ...options }: PostgresOptions): Promise<Store> {
  const instanceId = randomId();
  const prepare = (client: Session & Queries) => prepareDatabase(client, options);
  const line = await openLine(place, prepare, isAlone ? undefined : instanceId);
  try {
    return await serve(line, instanceId);
  } catch (error) {
    await line.close();
    throw error;
  }
}

/** Makes the tables if the database is empty and that is wanted, and binds it to environment and currency. */
export async function prepareDatabase(
  client: Session & Queries,
  { environment, currency, opening }: Omit<PostgresOptions, 'place'>,
): Promise<void> {
  await refuseWithoutGrants(client);
  const schema = await schemaOf(client);
  if (schema > 0 && opening === 'NEW')
    throw new DatabaseError(
      'the database has the tables of Artseal already: use it as it is, or name another one.',
    );
  if (schema === 0 && opening === 'EXISTING')
    throw new DatabaseError(
      'the database has no tables of Artseal: run artseal init, or set ARTSEAL_DATABASE_URL to the one that has them.',
    );
  if (schema === 0) await migrate(client);
  await refuseOtherSchema(client);
  const bound = () => client.query<{ environment: string; currency: string }>(selectBinding);
  // Only the role that makes the tables may bind them.
  if ((await bound()).rows.length === 0)
    await client.query(insertBinding, [environment, randomBytes(32), currency]);
  const { environment: ofDatabase, currency: inDatabase } = (await bound()).rows[0] ?? {};
  if (ofDatabase !== environment)
    throw new DatabaseError(
      `the database belongs to a ${ofDatabase} deployment and cannot open as ${environment}: set ARTSEAL_ENVIRONMENT to match, or use another database.`,
    );
  if (inDatabase !== currency)
    throw new DatabaseError(
      `the database belongs to a deployment in ${inDatabase} and cannot open in ${currency}: set ARTSEAL_CURRENCY to match, or use another database.`,
    );
}

const selectBinding = 'SELECT environment, currency FROM deployment';

const insertBinding = `INSERT INTO deployment (id, environment, secret, currency) VALUES (1, $1, $2, $3)
  ON CONFLICT DO NOTHING`;

/** How often an idle instance reads what others have done, in milliseconds. */
const followEveryMs = 250;

/** How often an instance reports that it serves, in milliseconds. */
const signEveryMs = 1_000;

async function serve(line: Line, instanceId: number): Promise<Store> {
  const core = await openCore(line, instanceId);
  const { instances } = core;
  let isClosed = false;
  const rest = {
    ...{ checkedMs: undefined, upgrade: undefined, findFault: line.fault, lost: line.lost },
    instances: { isLeading: () => !isClosed && core.isLeading(), others: instances.others },
  };
  const signing = setInterval(instances.wake, signEveryMs).unref();
  const store = createCoreStore(core, rest, async () => {
    isClosed = true;
    clearInterval(signing);
    if (line.isInSession()) await instances.leave().catch(rejectUnlessMachineFault);
    await line.close();
  });
  async function follow(): Promise<void> {
    // It rejects while the database cannot be reached, and once the store is closed.
    if (instances.hasJoined()) await store.execute({}).catch(() => {});
    if (!isClosed) setTimeout(() => void follow(), followEveryMs).unref();
  }
  setTimeout(() => void follow(), followEveryMs).unref();
  return store;
}
