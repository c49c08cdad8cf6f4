import { once } from 'node:events';
import type { TestContext } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { type BoundedResult, serveWatched, type WatchedService } from '../support/watched-command.ts';

/** How long after its end a server is started again, in milliseconds: RestartSec of deploy/systemd. */
const restartMs = 1_000;

/** A server that is started again when it ends, as systemd does. */
export interface SupervisedService {
  /** The running server; undefined between two of them. */
  readonly running: () => WatchedService | undefined;
  /** The log of all of them. */
  readonly log: () => string;
  readonly starts: () => number;
  /** The errors of starts that failed. */
  readonly failures: () => readonly string[];
  /** Stops it for good. */
  readonly stop: () => Promise<BoundedResult['code'] | undefined>;
}

/** Starts a server with these settings. Resolves when it serves. */
export async function supervise(t: TestContext, env: Record<string, string>): Promise<SupervisedService> {
  let running: WatchedService | undefined = await serveWatched(t, env);
  let isStopped = false;
  const servers = [running];
  const failures: string[] = [];
  const restarting = (async () => {
    while (!isStopped) {
      if (running !== undefined && running.child.exitCode === null && running.child.signalCode === null)
        await once(running.child, 'close');
      running = undefined;
      if (isStopped) return;
      await delay(restartMs);
      running = await serveWatched(t, env).catch((error: Error) => void failures.push(error.message));
      if (running !== undefined) servers.push(running);
    }
  })();
  t.after(() => {
    isStopped = true;
  });
  return {
    running: () => running,
    log: () => [...servers.map(({ stderr }) => stderr()), ...failures].join(''),
    starts: () => servers.length + failures.length,
    failures: () => failures,
    stop: async () => {
      isStopped = true;
      const code = await running?.stop();
      await restarting;
      return code;
    },
  };
}
