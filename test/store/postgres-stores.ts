import type { TestContext } from 'node:test';
import type pg from 'pg';
import { openPostgresStore } from '../../src/store/postgres/store.ts';
import { perform } from '../../src/store/store.ts';
import { createDatabase, type PostgresCluster } from '../support/postgres.ts';
import { addPlatform, instanceFacts, sandbox } from './promises/fixtures.ts';

/** A database with the platform `gallery`, and functions that open a store on it, or one that joined as an instance of a host. */
export async function openDatabase(t: Pick<TestContext, 'after'>, cluster?: PostgresCluster) {
  const url = await createDatabase(t, cluster && { cluster });
  const open = async () => {
    const store = await openPostgresStore({ place: { url }, ...sandbox });
    t.after(() => store.close());
    return store;
  };
  const openAs = async (host: string) => {
    const store = await open();
    await perform(store, { kind: 'JoinInstances', facts: instanceFacts(host) });
    return store;
  };
  const one = await openPostgresStore({ place: { url }, ...sandbox });
  await addPlatform(one, 'gallery');
  await one.close();
  return { url, open, openAs };
}

/** Ends the sessions of all stores. */
export const endSessions = `SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
  WHERE datname = current_database() AND application_name = 'artseal'`;

/** Statements that change a table that takes new rows only. */
export const withoutTriggers = (table: string, statement: string): readonly string[] => [
  `ALTER TABLE ${table} DISABLE TRIGGER ALL`,
  statement,
  `ALTER TABLE ${table} ENABLE TRIGGER ALL`,
];

/** Statements that lose the newest filing, as a fail-over to a standby that lags does, and all sessions. */
export const loseFiling = (filingNo: string): readonly string[] => [
  ...withoutTriggers('event', `DELETE FROM event WHERE filing_no = '${filingNo}'`),
  ...withoutTriggers('log_leaf', 'DELETE FROM log_leaf WHERE id = (SELECT max(id) FROM log_leaf)'),
  ...withoutTriggers('filing', `DELETE FROM filing WHERE filing_no = '${filingNo}'`),
  endSessions,
];

/** Closes the connection of a client at once, as a network that breaks does. */
export function cutConnection(client: pg.Client): void {
  (client as unknown as { connection: { stream: { destroy(): void } } }).connection.stream.destroy();
}
