import { join } from 'node:path';
import pg from 'pg';
import { type Sent, startLoad, type Workload } from './generator.ts';
import { comparisonLines, measureRounds } from './measurements.ts';
import type { PlannedSending } from './plan.ts';
import { type Server, startOnPostgres } from './servers.ts';

/** Filings of a round, so that a year has numbers for those of half an hour. */
const filings = 4_000;

/** Measures filings while somebody has a snapshot of the database, beside those of a service without one. */
export async function measureOldSnapshot(
  { rounds, sending: { connections, requests } }: { rounds: number; sending: PlannedSending },
  dir: string,
  print: (text: string) => void,
): Promise<void> {
  const servers = await Promise.all([
    startOnPostgres('old snapshot', join(dir, 'old-snapshot')),
    startOnPostgres('postgres', join(dir, 'no-snapshot')),
  ]);
  const load = startLoad();
  const send = (server: Server): Promise<Sent> => load.send(server, 'public', connections);
  const prepare = (workload: Workload, requests: number) =>
    load.prepare({
      ...{ workload, requests, credentials: servers.map(({ credentials }) => credentials) },
      filed: { year: new Date().getUTCFullYear(), last: filings },
    });
  const sendToAll = async (workload: Workload, requests: number) => {
    await prepare(workload, requests);
    for (const server of servers) await send(server);
  };
  await sendToAll('filing', filings);
  const reader = new pg.Client({ connectionString: servers[0].databaseUrl });
  await reader.connect();
  await reader.query('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM filing');
  const beganMs = performance.now();
  const measured = await measureRounds(
    servers,
    rounds,
    // Calls that need no number leave dead rows, too.
    async () => {
      await sendToAll('provenance', requests);
      await prepare('filing', filings);
    },
    send,
  );
  const minutes = ((performance.now() - beganMs) / 60_000).toFixed(1);
  print(`\nFilings under a snapshot that became ${minutes} minutes old; connections: ${connections}`);
  for (const line of comparisonLines(measured, connections, 'filing')) print(line);
  print('The last quarter of the rounds:');
  const lastQuarter = measured.map(({ name, figures }) => ({
    name,
    figures: figures.slice(-Math.ceil(rounds / 4)),
  }));
  for (const line of comparisonLines(lastQuarter, connections, 'filing')) print(line);
  await reader.end();
}
