import { randomBytes } from 'node:crypto';
import { createCoreStore } from '../engine/core-store.ts';
import { DatabaseError } from '../engine/failure.ts';
import type { PostgresPlace, Store, StoreOptions } from '../store.ts';
import { openCore } from './core.ts';
import type { Queries } from './leaf-rows.ts';
import { type Line, openLine } from './line.ts';
import { refuseWithoutGrants } from './roles.ts';
import { migrate, refuseOtherSchema, type Session, schemaOf } from './upgrade.ts';

/** Options to open a store on PostgreSQL with. */
export type PostgresOptions = Pick<StoreOptions, 'environment' | 'currency' | 'opening'> & {
  readonly place: PostgresPlace;
};

/** Opens the store on PostgreSQL. Throws DatabaseError. */
export async function openPostgresStore({ place, ...options }: PostgresOptions): Promise<Store> {
  const line = await openLine(place, (client) => prepareDatabase(client, options));
  try {
    return await serve(line);
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

async function serve(line: Line): Promise<Store> {
  const rest = { checkedMs: undefined, upgrade: undefined, findFault: line.fault, lost: line.lost };
  return createCoreStore(await openCore(line), rest, line.close);
}
