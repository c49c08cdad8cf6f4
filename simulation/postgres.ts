import { connect, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import pg from 'pg';
import { openPostgresStore } from '../src/store/postgres/store.ts';
import { copyToSqlite } from '../test/support/engine.ts';
import { type Engine, followTransactions, secretOf, type Watch } from './engine.ts';
import { deployment } from './world.ts';

/** The name of PostgreSQL's socket in its folder. */
const socketName = '.s.PGSQL.5432';

/** Another URL of the same database, whose socket is in this folder. */
const through = (folder: string, url: string): string =>
  url.replace(/host=[^&]*/, `host=${encodeURIComponent(folder)}`);

const socketOf = (url: string): string =>
  join(new URL(url.replace('@', '@localhost')).searchParams.get('host') ?? '', socketName);

/** PostgreSQL, which each instance reaches by a socket in its folder that can lose its connections. */
export function postgresEngine(url: string): Engine {
  /** The connections to PostgreSQL that instances have lost. Its sessions may still execute what they were sent. */
  const ending = new Set<Socket>();
  const optionsOf = (place: string, opening: 'NEW' | 'EXISTING') => ({
    ...{ ...deployment, opening, place: { url: place } },
  });
  return {
    isInRealTime: true,
    prepare: async (_folder, dice) => {
      await (await openPostgresStore(optionsOf(url, 'NEW'))).close();
      await query(url, 'UPDATE deployment SET secret = $1', [secretOf(dice)]);
    },
    isReleased: () => ending.size === 0,
    open: async (folder) => {
      const relay = await openRelay(join(folder, socketName), socketOf(url), ending);
      const store = await openPostgresStore(optionsOf(through(folder, url), 'EXISTING'));
      return {
        start: (watch) => {
          relay.watch(watch);
          return store;
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

async function query(url: string, text: string, values: readonly unknown[]): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    await client.query(text, [...values]);
  } finally {
    await client.end();
  }
}

/**
 * Passes the bytes of an instance and of PostgreSQL on. Loses them when the connection is lost: what PostgreSQL has got by then, it
 * still executes. Meanwhile its connection is in `ending`.
 */
async function openRelay(path: string, to: string, ending: Set<Socket>) {
  const instances = new Set<Socket>();
  let around: Around = { sends: () => {}, receives: () => {} };
  const lose = () => {
    for (const socket of instances) socket.destroy();
  };
  const server = createServer((instance) => {
    const postgres = connect(to);
    instances.add(instance);
    for (const socket of [instance, postgres]) socket.on('error', () => {});
    instance.on('data', (bytes: Buffer) => {
      around.sends(bytes);
      if (!instance.destroyed) postgres.write(bytes);
    });
    postgres.on('data', (bytes: Buffer) => {
      if (instance.destroyed) return;
      around.receives(bytes);
      if (!instance.destroyed) instance.write(bytes);
    });
    instance.on('close', () => {
      instances.delete(instance);
      if (!postgres.destroyed) ending.add(postgres.end());
    });
    postgres.on('close', () => {
      ending.delete(postgres);
      instance.destroy();
    });
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
