import pg from 'pg';
import { openCluster, skipUnlessPostgres } from '../test/support/postgres.ts';

// Runs PostgreSQL for development in a temporary folder, until Ctrl+C.

const missing = skipUnlessPostgres();
if (missing !== false) {
  process.stderr.write(`${missing}\n`);
  process.exit(1);
}
// The server refuses a database without fsync.
const cluster = await openCluster({ fsync: true });
const client = new pg.Client({ connectionString: cluster.url('postgres') });
await client.connect();
await client.query('CREATE DATABASE artseal');
process.stdout.write(`ARTSEAL_DATABASE_URL='${cluster.url('artseal')}'\nCtrl+C removes it with its data.\n`);

// This connection keeps the process running as long as the cluster runs.
client.on('error', () => {});
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => void cluster.remove());
