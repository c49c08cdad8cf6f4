import pino, { type Logger } from 'pino';
import { ApiError } from '../src/domain/reason.ts';
import type { Notification } from '../src/payments/provider.ts';
import type { Assembly } from './assembly.ts';
import type { Bank } from './bank.ts';
import type { Disk } from './disk.ts';
import { type Engine, type Eventual, type Opened, type Strike, whenThere } from './engine.ts';
import { ConnectionLost, type Instance, startInstance } from './instance.ts';
import { odds, worldLimits } from './limits.ts';
import { everybody } from './trace.ts';
import { Violation } from './violation.ts';
import type { World } from './world.ts';

/** Runs the service and starts a new instance after each kill or stop. */
export type Supervisor = ReturnType<typeof createSupervisor>;

interface SupervisorOptions {
  readonly world: World;
  /** The number of sessions; the odds of kills depend on it. */
  readonly orders: number;
  /** Whether the service is also killed the first time that it reaches each step. */
  readonly killsAtEachStep: boolean;
  readonly disk: Disk;
  readonly engine: Engine;
  readonly bank: () => Bank;
  readonly assembly: Assembly;
  /** Checks the folder that the previous instance left, before the next one opens it. */
  readonly inspect: (folder: string) => Eventual<void>;
}

/** Creates a supervisor for the database in the folder `first`. No instance is running yet. */
export function createSupervisor(
  { world, orders, killsAtEachStep, disk, engine, bank, assembly, inspect }: SupervisorOptions,
  first: string,
) {
  const { clock, trace, tally } = world;
  const dice = world.dice.fork('keeper');
  const random = world.dice.fork('service').share;
  const log = createLog(world);
  const closings = new Set<Promise<void>>();
  let operations = 0;
  let folder = first;
  let current: Instance | undefined;
  let isStarting = false;
  let cancelStart = () => {};

  const newInstructionId = () => {
    operations += 1;
    return `op-${operations}`;
  };

  function startLater(): void {
    cancelStart();
    cancelStart = clock.after(dice.upTo(worldLimits.downMaxMs), start);
  }
  function start(): void {
    cancelStart();
    if (current !== undefined || isStarting) return;
    isStarting = true;
    trace.note(everybody, 'the service starts');
    tally.count('starts');
    try {
      const inspected = whenThere(engine.released(), () => inspect(folder));
      const opened = whenThere(inspected, () => engine.open(folder));
      const begun = whenThere(opened, begin);
      if (begun instanceof Promise) begun.catch(world.fail);
    } catch (error) {
      world.fail(error);
    }
  }
  function begin(opened: Opened): void {
    isStarting = false;
    const connection = bank().connect();
    current = startInstance({
      ...{ world, folder, opened, connection, assembly, newInstructionId, random, log, point, step, strike },
    });
    resume(current);
  }
  function resume(instance: Instance): void {
    instance.start().catch((error) => {
      if (!(error instanceof ApiError && error.reason === 'UNAVAILABLE')) world.fail(error);
      else if (instance === current) end(instance, 'because it cannot start');
    });
  }
  function strike(instance: Instance): Strike | undefined {
    if (instance !== current || world.isCalm()) return undefined;
    const statements = dice.upTo(worldLimits.statementsMax);
    if (dice.oneIn(odds.killInBatch(orders))) return { statements, befall: crashOf(instance) };
    return dice.oneIn(odds.storeFault) ? { statements, befall: failureOf(instance) } : undefined;
  }
  /** Returns a strike that kills the instance in the current transaction and checks that none of it was committed. */
  function crashOf(instance: Instance): Strike['befall'] {
    const before = engine.contents(instance.folder);
    return (place) => {
      tally.count(`kill ${place}`);
      end(instance, place);
      if (engine.contents(folder) === before) return;
      world.fail(new Violation(everybody, `the crash ${place} left parts of an uncommitted transaction`));
    };
  }
  function failureOf(instance: Instance): Strike['befall'] {
    return (place) => {
      tally.count(`fault store ${place}`);
      trace.note(everybody, `the store fails ${place}`);
      instance.fail(place);
    };
  }
  function point(name: string, instance: Instance): void {
    step(name, instance);
    if (instance !== current || world.isCalm()) return;
    if (name === 'after a commit' && engine.isInRealTime && dice.oneIn(odds.storeFault))
      failureOf(instance)(name);
    if (!dice.oneIn(odds.killAtPoint(orders))) return;
    tally.count(`kill ${name}`);
    end(instance, name);
  }
  function step(name: string, instance: Instance): void {
    if (!killsAtEachStep || instance !== current || world.isCalm() || tally.of(`kill ${name}`) > 0) return;
    tally.count(`kill ${name}`);
    end(instance, name);
  }
  function end(instance: Instance, where: string): void {
    trace.note(everybody, `the service is killed ${where}`);
    current = undefined;
    folder = disk.crashCopy(instance.folder);
    instance.kill();
    const closing = instance
      .close()
      .catch(world.fail)
      .finally(() => {
        disk.drop(instance.folder);
        closings.delete(closing);
      });
    // A killed store on PostgreSQL waits for half a minute for the fate of its last commit.
    if (!engine.isInRealTime) closings.add(closing);
    startLater();
  }

  return {
    /** Returns the running instance. Throws ConnectionLost if the service is down. */
    instance: () => {
      if (current === undefined) throw new ConnectionLost('The service is down.');
      return current;
    },
    deliver: async (notification: Notification) => {
      if (current === undefined) throw new ConnectionLost('The service is down.');
      await current.take(notification);
    },
    /** Kills the running instance, if there is one. */
    kill: () => {
      if (current === undefined) return;
      tally.count('kill at any time');
      end(current, 'at any time');
    },
    /** Stops the running instance as SIGTERM does, if there is one. A new one starts later unless `isForGood`. */
    stop: async (isForGood = false) => {
      const instance = current;
      if (instance === undefined) return;
      trace.note(everybody, 'the service is stopped');
      await instance.stop();
      if (instance !== current) return;
      current = undefined;
      tally.count('stops');
      trace.note(everybody, 'the service has stopped');
      if (!isForGood) startLater();
    },
    /** Starts an instance now, if none is running. */
    start,
    /** Whether an instance is starting, or its store is busy. */
    isBusy: () => isStarting || current?.isBusy() === true,
    /** The folder of the running instance, or of the last one. */
    folder: () => folder,
    /** Resolves when all killed instances have closed their files. */
    closed: async () => {
      await Promise.all(closings);
    },
  };
}

/** Creates a logger that adds each log line to the trace. */
function createLog({ trace, tally, witness }: World): Logger {
  const write = (line: string) => {
    const { escrowId, msg, err, from, to } = JSON.parse(line);
    const change = from === undefined ? '' : ` ${from} to ${to}`;
    const why = err === undefined ? '' : ` (${err.message})`;
    trace.note(escrowId ?? everybody, `log: ${msg}${change}${why}`);
    tally.count(`log ${msg}`);
    if (msg === 'an order needs a person') witness.alerted(escrowId);
  };
  return pino({ base: null, timestamp: false }, { write });
}
