import { connect, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import pg from 'pg';
import { openPostgresStore } from '../src/store/postgres/store.ts';
import { copyToSqlite } from '../test/support/engine.ts';
import { type Engine, followTransactions, secretOf, type Watch } from './engine.ts';
import { deployment, turn } from './world.ts';

/** The name of PostgreSQL's socket in its folder. */
const socketName = '.s.PGSQL.5432';

/** Another URL of the same database, whose socket is in this folder. */
const through = (folder: string, url: string): string =>
  url.replace(/host=[^&]*/, `host=${encodeURIComponent(folder)}`);

const socketOf = (url: string): string =>
  join(new URL(url.replace('@', '@localhost')).searchParams.get('host') ?? '', socketName);

/** PostgreSQL, which each instance reaches by a socket in its folder that can lose its connections. */
export function postgresEngine(url: string): Engine {
  const optionsOf = (place: string, opening: 'NEW' | 'EXISTING') => ({
    ...{ ...deployment, opening, place: { url: place } },
  });
  return {
    isInRealTime: true,
    prepare: async (_folder, dice) => {
      await (await openPostgresStore(optionsOf(url, 'NEW'))).close();
      await query(url, 'UPDATE deployment SET secret = $1', [secretOf(dice)]);
    },
    released: async () => {
      // A session may still execute what it was sent before its connection was lost.
      while ((await query(url, selectSessions)).length > 0) await turn();
    },
    open: async (folder) => {
      const relay = await openRelay(join(folder, socketName), socketOf(url));
      const store = await openPostgresStore(optionsOf(through(folder, url), 'EXISTING'));
      return {
        start: (watch) => {
          relay.watch(watch);
          // One instance serves at a time, and does the background work without a lock.
          return { ...store, instances: undefined };
        },
        fail: relay.lose,
        cut: relay.close,
        end: relay.close,
      };
    },
    read: async (_folder, read) => {
      const client = await copyToSqlite(url);
      try {
        return read(client);
      } finally {
        client.close();
      }
    },
    contents: () => undefined,
  };
}

const selectSessions = `SELECT FROM pg_stat_activity
  WHERE datname = current_database() AND application_name = 'artseal'`;

async function query(url: string, text: string, values: readonly unknown[] = []): Promise<unknown[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query(text, [...values])).rows;
  } finally {
    await client.end();
  }
}

/** Passes the bytes of an instance and of PostgreSQL on. Loses them when the connection is lost. */
async function openRelay(path: string, to: string) {
  const sockets = new Set<Socket>();
  let around: Around = { sends: () => {}, receives: () => {} };
  const lose = () => {
    for (const socket of sockets) socket.destroy();
  };
  const pass = (from: Socket, onto: Socket, before: (bytes: Buffer) => void) => {
    sockets.add(from);
    from.on('error', () => {});
    from.on('close', () => {
      sockets.delete(from);
      onto.destroy();
    });
    from.on('data', (bytes: Buffer) => {
      before(bytes);
      if (!from.destroyed) onto.write(bytes);
    });
  };
  const server = createServer((instance) => {
    const postgres = connect(to);
    pass(instance, postgres, (bytes) => around.sends(bytes));
    pass(postgres, instance, (bytes) => around.receives(bytes));
  });
  await new Promise<void>((resolve) => server.listen(path, resolve));
  return {
    watch: (watch: Watch) => {
      around = createBytesWatch(watch);
    },
    lose,
    close: () => {
      server.close();
      lose();
    },
  };
}

/** Is called with bytes before they are passed on. */
interface Around {
  sends(bytes: Buffer): void;
  receives(bytes: Buffer): void;
}

/** In the bytes of each transaction that writes. */
const beginning = 'insert batch';
const commit = 'COMMIT\0';

/** Watches the bytes of write transactions. What is sent at once counts as a statement. */
function createBytesWatch(on: Watch): Around {
  const { isWriting, begin, next, committed } = followTransactions(on);
  return {
    sends: (bytes) => {
      if (!isWriting() && bytes.includes(beginning)) begin();
      next(bytes.includes(commit));
    },
    receives: (bytes) => {
      if (bytes.includes(commit)) committed();
    },
  };
}
