import { ApiError } from '../src/domain/reason.ts';
import { createLog, type Logger } from '../src/lib/log.ts';
import type { Notification } from '../src/payments/provider.ts';
import type { Assembly } from './assembly.ts';
import type { Bank } from './bank.ts';
import type { Dice } from './dice.ts';
import type { Disk } from './disk.ts';
import { type Engine, type Eventual, type Opened, type Strike, whenThere } from './engine.ts';
import { ConnectionLost, type Instance, startInstance } from './instance.ts';
import { odds, worldLimits } from './limits.ts';
import { everybody } from './trace.ts';
import { Violation } from './violation.ts';
import { turn, type World } from './world.ts';

/** Runs the instances of the service, and starts a new one after each kill or stop. */
export type Supervisor = ReturnType<typeof createSupervisor>;

interface SupervisorOptions {
  readonly world: World;
  /** The number of sessions; the odds of kills depend on it. */
  readonly orders: number;
  /** The number of instances that serve at a time. */
  readonly instances: number;
  /** Whether the service is also killed the first time that it reaches each step. */
  readonly killsAtEachStep: boolean;
  readonly disk: Disk;
  readonly engine: Engine;
  readonly bank: () => Bank;
  readonly assembly: Assembly;
  /** Checks the records before an instance opens them. Nothing changes them meanwhile. */
  readonly inspect: () => Eventual<void>;
}

/** What the places of all instances share. */
interface Shared extends SupervisorOptions {
  readonly dice: Dice;
  readonly random: () => number;
  readonly newInstructionId: () => string;
  readonly closings: Set<Promise<void>>;
  /** Whether an instance is starting in some place. */
  isStarting: boolean;
  /** The instance that did background work last. */
  leader: Instance | undefined;
  /** All instances that are running. */
  readonly running: () => readonly Instance[];
}

/** Creates a supervisor with a new folder for each instance. No instance is running yet. */
export function createSupervisor(options: SupervisorOptions) {
  const { world, disk } = options;
  /** Draws instances. It leaves the other draws as they are with a single instance. */
  const choice = world.dice.fork('instances');
  let operations = 0;
  const shared: Shared = {
    ...options,
    dice: world.dice.fork('keeper'),
    random: world.dice.fork('service').share,
    newInstructionId: () => {
      operations += 1;
      return `op-${operations}`;
    },
    closings: new Set(),
    isStarting: false,
    leader: undefined,
    running: () => places.flatMap((place) => place.current() ?? []),
  };
  const places = Array.from({ length: options.instances }, (_, index) =>
    createPlace(shared, `service ${index + 1}`, disk.newFolder()),
  );
  const placeOf = (number: number) => places[number % places.length] as Place;
  const any = () => choice.below(places.length);
  const isBusy = () => shared.isStarting || shared.running().some((instance) => instance.isBusy());
  const lacksLeader = () => {
    const running = shared.running();
    return running.length > 0 && !running.some((instance) => instance.isLeading());
  };

  function instance(number = any()): Instance {
    const current = placeOf(number).current();
    if (current === undefined) throw new ConnectionLost('The service is down.');
    return current;
  }
  return {
    /** Returns the instance with a number, modulo how many there are, or any one. Throws ConnectionLost if it is down. */
    instance,
    /** Delivers a notification to any instance. */
    deliver: async (notification: Notification) => instance().take(notification),
    /** Kills an instance, if it is running. */
    kill: () => placeOf(any()).kill(),
    /** Stops an instance as SIGTERM does, if it is running. A new one starts later. */
    stop: () => placeOf(any()).stop(),
    /** Stops all instances for good. */
    stopAll: () => Promise.all(places.map((place) => place.stop(true))),
    /** Starts an instance in each place that has none. */
    start: () => {
      for (const place of places) place.start();
    },
    /** Whether an instance is starting, a store is busy, or none of those that run leads. */
    isBusy: () => isBusy() || lacksLeader(),
    /** The folders of the running instances, or of the last ones. */
    folders: () => places.map((place) => place.folder()),
    /** Ends the instances that a failed run has left. Resolves when all killed instances have closed their files. */
    end: async () => {
      for (const place of places) place.end();
      await Promise.all(shared.closings);
    },
  };
}

type Place = ReturnType<typeof createPlace>;

/** Creates the place of an instance. After each kill or stop, a new instance starts there. */
function createPlace(shared: Shared, name: string, first: string) {
  const { world, orders, killsAtEachStep, disk, engine, bank, assembly, inspect } = shared;
  const { dice, random, newInstructionId, closings, running } = shared;
  const { clock, trace, tally } = world;
  const log = createTraceLog(world, name);
  let folder = first;
  let current: Instance | undefined;
  let isOver = false;
  let cancelStart = () => {};

  function startLater(): void {
    cancelStart();
    cancelStart = clock.after(dice.upTo(worldLimits.downMaxMs), start);
  }
  function start(): void {
    cancelStart();
    if (current !== undefined) return;
    if (shared.isStarting) {
      startLater();
      return;
    }
    shared.isStarting = true;
    trace.note(everybody, `${name} starts`);
    tally.count('starts');
    try {
      const inspected = whenThere(engine.isInRealTime ? standstill() : undefined, inspect);
      const opened = whenThere(inspected, () => engine.open(folder));
      const begun = whenThere(opened, begin);
      if (begun instanceof Promise) begun.catch(world.fail);
    } catch (error) {
      world.fail(error);
    }
  }
  /** Resolves when nothing is under way but what waits for the clock, which waits for this. */
  async function standstill(): Promise<void> {
    // The step of the clock that started this ends first.
    do await turn();
    while (!engine.isReleased() || running().some((instance) => instance.isBusy()));
  }
  function begin(opened: Opened): void {
    shared.isStarting = false;
    const connection = bank().connect();
    current = startInstance({
      ...{ world, name, folder, opened, connection, assembly, newInstructionId, random, log, point, step },
      ...{ strike, begins },
    });
    if (isOver) close(current);
    else resume(current);
  }
  function resume(instance: Instance): void {
    instance.start().catch((error) => {
      if (!(error instanceof ApiError && error.reason === 'UNAVAILABLE')) world.fail(error);
      else if (instance === current) end(instance, 'because it cannot start');
    });
  }
  /** Background work may begin only while no other instance leads. */
  function begins(instance: Instance): void {
    if (instance !== shared.leader) tally.count('leaders');
    shared.leader = instance;
    const other = running().find((one) => one !== instance && one.isLeading());
    if (other === undefined) return;
    world.fail(new Violation(everybody, `${name} does the background work, and ${other.name} leads`));
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
      trace.note(everybody, `the store of ${name} fails ${place}`);
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
    trace.note(everybody, `${name} is killed ${where}`);
    folder = disk.crashCopy(instance.folder);
    close(instance);
    startLater();
  }
  function close(instance: Instance): void {
    current = undefined;
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
  }

  return {
    current: () => current,
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
      trace.note(everybody, `${name} is stopped`);
      await instance.stop();
      if (instance !== current) return;
      current = undefined;
      tally.count('stops');
      trace.note(everybody, `${name} has stopped`);
      if (!isForGood) startLater();
    },
    /** Starts an instance now if none is running, or later if one is starting elsewhere. */
    start,
    /** Ends the running instance for good, if there is one. */
    end: () => {
      isOver = true;
      cancelStart();
      if (current !== undefined) close(current);
    },
    /** The folder of the running instance, or of the last one. */
    folder: () => folder,
  };
}

/** Creates a logger that adds each log line of an instance to the trace. */
function createTraceLog({ trace, tally, witness }: World, name: string): Logger {
  const write = (line: string) => {
    const { escrowId, msg, err, from, to } = JSON.parse(line);
    const change = from === undefined ? '' : ` ${from} to ${to}`;
    const why = err === undefined ? '' : ` (${err.message})`;
    trace.note(escrowId ?? everybody, `log of ${name}: ${msg}${change}${why}`);
    tally.count(`log ${msg}`);
    if (msg === 'an order needs a person') witness.alerted(escrowId);
  };
  return createLog({ write });
}
