import Sqlite from 'better-sqlite3';
import pino, { type Logger } from 'pino';
import { ApiError } from '../src/domain/reason.ts';
import type { Notification } from '../src/payments/provider.ts';
import type { Assembly } from './assembly.ts';
import type { Bank } from './bank.ts';
import { contentsOf } from './books.ts';
import type { Disk } from './disk.ts';
import { beginLife, ConnectionLost, type Life, type Strike } from './life.ts';
import { odds, worldLimits } from './limits.ts';
import { everybody } from './trace.ts';
import { Violation } from './violation.ts';
import type { World } from './world.ts';

/** Keeps the service going, as a supervisor does: after each end comes the next life. */
export interface Keeper {
  /** The life that takes calls. Throws ConnectionLost if there is none. */
  life(): Life;
  deliver(notification: Notification): Promise<void>;
  /** Kills the service, if it runs. */
  kill(): void;
  /** Stops it as SIGTERM does, if it runs; the next life comes by itself, unless it is stopped for good. */
  stop(isForGood?: boolean): Promise<void>;
  /** Starts it now, if it does not run. */
  begin(): void;
  /** The folder that the service has, or had last. */
  folder(): string;
  /** Resolves when all that earlier lives held is let go of. */
  buried(): Promise<void>;
}

/** What the keeper needs. */
export interface KeeperOptions {
  readonly world: World;
  /** How many orders there will be. */
  readonly orders: number;
  /** Whether it is killed the first time that it comes to each step, too. */
  readonly killsAtEachStep: boolean;
  readonly disk: Disk;
  readonly bank: () => Bank;
  readonly assembly: Assembly;
  /** Looks at what an earlier life left, before the next one touches it. */
  readonly inspect: (folder: string) => void;
}

/** Begins with no life, on the database of a folder. */
export function createKeeper(
  { world, orders, killsAtEachStep, disk, bank, assembly, inspect }: KeeperOptions,
  first: string,
): Keeper {
  const { clock, trace, tally } = world;
  const dice = world.dice.fork('keeper');
  const random = world.dice.fork('service').share;
  const log = createLog(world);
  const burials = new Set<Promise<void>>();
  let operations = 0;
  let folder = first;
  let current: Life | undefined;
  let callOffBegin = () => {};

  const newInstructionId = () => {
    operations += 1;
    return `op-${operations}`;
  };

  function beginLater(): void {
    callOffBegin();
    callOffBegin = clock.after(dice.upTo(worldLimits.downMaxMs), begin);
  }
  function begin(): void {
    callOffBegin();
    if (current !== undefined) return;
    trace.note(everybody, 'the service starts');
    tally.count('starts');
    try {
      inspect(folder);
      const connection = bank().connect();
      current = beginLife({
        ...{ world, folder, connection, assembly, newInstructionId, random, log, point, step, strike },
      });
      start(current);
    } catch (error) {
      world.fail(error);
    }
  }
  function start(life: Life): void {
    life.start().catch((error) => {
      if (!(error instanceof ApiError && error.reason === 'UNAVAILABLE')) world.fail(error);
      else if (life === current) end(life, 'as it cannot start');
    });
  }
  function strike(life: Life): Strike | undefined {
    if (life !== current || world.isCalm()) return undefined;
    const statements = dice.upTo(worldLimits.statementsMax);
    if (dice.oneIn(odds.killInBatch(orders))) return { statements, befall: crashOf(life) };
    return dice.oneIn(odds.diskFault) ? { statements, befall: failDisk } : undefined;
  }
  /** Kills a life whose transaction begins now, and sees to it that nothing of that is left. */
  function crashOf(life: Life): Strike['befall'] {
    const before = contentsOf(life.folder);
    return (place) => {
      tally.count(`kill ${place}`);
      end(life, place);
      if (contentsOf(folder) === before) return;
      world.fail(new Violation(everybody, `the crash ${place} left a part of what was not committed`));
    };
  }
  function failDisk(place: Parameters<Strike['befall']>[0]): never {
    tally.count(`fault disk ${place}`);
    trace.note(everybody, `the disk fails ${place}`);
    if (place === 'in a batch') throw new Sqlite.SqliteError('disk I/O error', 'SQLITE_IOERR');
    throw new Sqlite.SqliteError('database or disk is full', 'SQLITE_FULL');
  }
  function point(name: string, life: Life): void {
    step(name, life);
    if (life !== current || world.isCalm() || !dice.oneIn(odds.killAtPoint(orders))) return;
    tally.count(`kill ${name}`);
    end(life, name);
  }
  function step(name: string, life: Life): void {
    if (!killsAtEachStep || life !== current || world.isCalm() || tally.of(`kill ${name}`) > 0) return;
    tally.count(`kill ${name}`);
    end(life, name);
  }
  function end(life: Life, where: string): void {
    trace.note(everybody, `the service is killed ${where}`);
    current = undefined;
    folder = disk.crashCopy(life.folder);
    life.kill();
    const burial = life
      .bury()
      .catch(world.fail)
      .finally(() => {
        disk.drop(life.folder);
        burials.delete(burial);
      });
    burials.add(burial);
    beginLater();
  }

  return {
    life: () => {
      if (current === undefined) throw new ConnectionLost('The service is down.');
      return current;
    },
    deliver: async (notification) => {
      if (current === undefined) throw new ConnectionLost('The service is down.');
      await current.take(notification);
    },
    kill: () => {
      if (current === undefined) return;
      tally.count('kill at any time');
      end(current, 'at any time');
    },
    stop: async (isForGood = false) => {
      const life = current;
      if (life === undefined) return;
      trace.note(everybody, 'the service is stopped');
      await life.stop();
      if (life !== current) return;
      current = undefined;
      tally.count('stops');
      trace.note(everybody, 'the service has stopped');
      if (!isForGood) beginLater();
    },
    begin,
    folder: () => folder,
    buried: async () => {
      await Promise.all(burials);
    },
  };
}

/** What the service logs becomes part of the trace. */
function createLog({ trace, tally, witness }: World): Logger {
  const write = (line: string) => {
    const { escrowId, msg, err, from, to } = JSON.parse(line);
    const change = from === undefined ? '' : ` ${from} to ${to}`;
    const why = err === undefined ? '' : ` (${err.message})`;
    trace.note(escrowId ?? everybody, `log: ${msg}${change}${why}`);
    tally.count(`log ${msg}`);
    if (msg === 'an order needs a person') witness.alarmed(escrowId);
  };
  return pino({ base: null, timestamp: false }, { write });
}
