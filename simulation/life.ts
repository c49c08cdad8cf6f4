import type { Logger } from 'pino';
import { createIdempotency } from '../src/access/idempotency.ts';
import type { Issuance } from '../src/access/issuance.ts';
import { createCalendar } from '../src/domain/calendar.ts';
import type { Clock } from '../src/domain/clock.ts';
import type { SignedNotification } from '../src/payment/simulated/notifications.ts';
import type { SimulatorConnection } from '../src/payment/simulated/simulator.ts';
import type { Service, ServiceParts } from '../src/service.ts';
import { createSqliteStore } from '../src/store/sqlite/engine.ts';
import type { Store } from '../src/store/store.ts';
import { type Door, openDoor } from './door.ts';
import { fillDisk } from './full-disk.ts';
import { simulatedLimits, worldLimits } from './limits.ts';
import { currency, sleep, turn, type World } from './world.ts';

/** One life of the service, from its start to its end, be it killed or stopped. */
export interface Life {
  readonly folder: string;
  readonly store: Store;
  readonly door: Door;
  /** Waits for some work of this life; rejects with ConnectionLost when the life ends before. */
  during<T>(work: () => Promise<T>): Promise<T>;
  take(notification: SignedNotification): Promise<void>;
  /** Looks after what an earlier life left. */
  start(): Promise<void>;
  /** Ends it here and now: nothing that it still does reaches anybody. */
  kill(): void;
  /** Ends it as SIGTERM does. */
  stop(): Promise<void>;
  /** Lets go of what it holds, after its end. */
  bury(): Promise<void>;
}

/** What a life is made of. */
export interface LifeOptions {
  readonly world: World;
  readonly folder: string;
  readonly connection: SimulatorConnection;
  readonly createService: (parts: ServiceParts) => Service;
  readonly newOperationId: () => string;
  readonly random: () => number;
  readonly log: Logger;
  /** Whether the disk has no room for the commit that comes now. */
  readonly isDiskFull: () => boolean;
  /** Called at each point at which a kill is told apart; it may kill this life. */
  readonly point: (name: string, life: Life) => void;
}

/** The service is not there, or went away before it answered. */
export class ConnectionLost extends Error {
  override name = 'ConnectionLost';
}

/** How many turns of the event loop a killed life has until its files are closed. */
const turnsUntilBurial = 3;

/** Nobody governs keys here. */
const noIssuance = undefined as unknown as Issuance;

/** Begins a life on the database of a folder. */
export function beginLife(options: LifeOptions): Life {
  const { world, folder, connection, random, newOperationId, log } = options;
  const clock = createMortalClock(world.clock);
  let isDead = false;
  const freeDisk = fillDisk(folder, () => !isDead && options.isDiskFull());
  const store = createSqliteStore({ dataDir: folder, environment: 'sandbox', currency, opening: 'EXISTING' });
  const calls = createCallsUnderWay();

  /** Does something between two points; what is dead waits for ever. */
  async function between<T>(name: string, work: () => Promise<T>): Promise<T> {
    reach(`before ${name}`);
    if (isDead) return never();
    const [outcome] = await Promise.allSettled([work()]);
    reach(`after ${name}`);
    if (isDead) return never();
    if (outcome.status === 'rejected') throw outcome.reason;
    return outcome.value;
  }
  function reach(point: string): void {
    if (!isDead) options.point(point, life);
  }

  const durable = () => between('commit', store.durable);
  const service = options.createService({
    store: { ...store, durable },
    issuance: noIssuance,
    institution: {
      ...connection,
      instruct: (instruction, signal) =>
        between(instruction.kind, () => connection.instruct(instruction, signal)),
      lookUp: (order, signal) => between('look-up', () => connection.lookUp(order, signal)),
    },
    ...{ clock, currency, random, newOperationId, log },
    calendar: createCalendar('Asia/Shanghai'),
    limits: simulatedLimits,
  });
  const idempotency = createIdempotency(store.idempotency, clock);
  const door = openDoor({ idempotency, dispatcher: service.dispatcher, durable });

  const life: Life = {
    folder,
    store: { ...store, durable },
    door: (principal, request, key) => calls.during(() => door(principal, request, key)),
    during: calls.during,
    take: ({ headers, body }) => {
      const lists = Object.entries(headers).map(([name, value]) => [name, [value]]);
      return calls.during(() => service.takeNotification({ headers: Object.fromEntries(lists), body }));
    },
    start: service.start,
    kill: () => {
      isDead = true;
      clock.end();
      connection.cut();
      calls.lose();
    },
    stop: async () => {
      calls.refuse();
      await Promise.race([calls.ended(), sleep(world, worldLimits.drainMs)]);
      await service.stop();
      await connection.close();
      calls.lose();
      if (isDead) return;
      // What the disk had no room for at the very end was promised to nobody.
      await store.close().catch(() => {});
      freeDisk();
    },
    bury: async () => {
      for (let turns = 0; turns < turnsUntilBurial; turns += 1) await turn();
      await store.close();
      freeDisk();
    },
  };
  return life;
}

/** A clock whose callbacks end with a life. */
function createMortalClock(clock: Clock): Clock & { end(): void } {
  const waiting = new Set<() => void>();
  let isEnded = false;
  return {
    nowMs: clock.nowMs,
    monotonicMs: clock.monotonicMs,
    after: (ms, callback) => {
      if (isEnded) return () => {};
      const callOff = clock.after(ms, () => {
        waiting.delete(callOff);
        callback();
      });
      waiting.add(callOff);
      return () => {
        waiting.delete(callOff);
        callOff();
      };
    },
    end: () => {
      isEnded = true;
      for (const callOff of waiting) callOff();
    },
  };
}

/** The calls that somebody outside waits for. */
function createCallsUnderWay() {
  const open = new Set<(error: Error) => void>();
  let isRefusing = false;
  let onIdle = () => {};
  return {
    during: async <T>(work: () => Promise<T>): Promise<T> => {
      if (isRefusing) throw new ConnectionLost('The service takes no calls.');
      const { promise: lost, reject } = Promise.withResolvers<never>();
      open.add(reject);
      try {
        return await Promise.race([work(), lost]);
      } finally {
        open.delete(reject);
        if (open.size === 0) onIdle();
      }
    },
    refuse: () => {
      isRefusing = true;
    },
    lose: () => {
      isRefusing = true;
      for (const reject of open) reject(new ConnectionLost('The connection to the service broke.'));
    },
    ended: () =>
      new Promise<void>((resolve) => {
        onIdle = resolve;
        if (open.size === 0) resolve();
      }),
  };
}

function never<T>(): Promise<T> {
  return new Promise<T>(() => {});
}
