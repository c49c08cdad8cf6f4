import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync } from 'node:fs';
import { connect, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { type PostgresCluster, postgresBinaries } from '../test/support/postgres.ts';
import { adopt } from './children.ts';

/** How long the log of a cluster takes to its standby, in milliseconds. The acknowledgement comes back at once. */
const awayMs = 5;

/** Starts a process that stores the log of a cluster as a synchronous standby does. The network to it takes `awayMs`. */
export async function startStandby({ folder }: PostgresCluster, scratch: string): Promise<void> {
  const proxy = createServer((standby) => {
    const cluster = connect(join(folder, '.s.PGSQL.5432'));
    delay(cluster, standby);
    standby.pipe(cluster);
    for (const socket of [standby, cluster]) socket.on('error', () => {});
  });
  proxy.listen(0, '127.0.0.1').unref();
  await once(proxy, 'listening');
  const { port } = proxy.address() as { port: number };
  mkdirSync(scratch);
  const words = ['--synchronous', '-D', scratch, '-h', '127.0.0.1', '-p', `${port}`, '-U', 'postgres'];
  adopt(
    spawn(join(postgresBinaries() ?? '', 'pg_receivewal'), words, { stdio: ['ignore', 'ignore', 'inherit'] }),
  );
}

/** Passes bytes on after `awayMs`, in their order. */
function delay(from: Socket, to: Socket): void {
  from.on('data', (bytes) => setTimeout(() => to.write(bytes), awayMs));
  from.on('end', () => setTimeout(() => to.end(), awayMs));
}
