import { setTimeout as delay } from 'node:timers/promises';
import { createManualClock } from '../test/support/clock.ts';
import { type Assembly, real } from './assembly.ts';
import { type Bank, nowAndThen, openBank } from './bank.ts';
import { type Books, readBooks } from './books.ts';
import { type Callers, registerCallers } from './callers.ts';
import { createDice } from './dice.ts';
import { createDisk, type Disk } from './disk.ts';
import { type Engine, type Eventual, sqliteEngine, whenThere } from './engine.ts';
import type { FaultRates } from './faults.ts';
import { checkAlways, checkFinally, checkNoneWaits } from './invariants.ts';
import { simulatedLimits, strikesMs, worldLimits } from './limits.ts';
import { runPerson, runWatcher } from './person.ts';
import { postgresEngine } from './postgres.ts';
import { runSession } from './session.ts';
import { type ShapeName, shapeNames } from './shapes.ts';
import { createSupervisor, type Supervisor } from './supervisor.ts';
import { createTally, createTrace, everybody, type Tally } from './trace.ts';
import { Violation } from './violation.ts';
import { createWitness } from './witness.ts';
import { turn, type World } from './world.ts';

/** What to simulate. */
export interface SimulationOptions {
  /** Any text. The same text gives the same run. */
  readonly seed: string;
  /** The number of sessions. Each opens one or more orders if its calls succeed. */
  readonly orders: number;
  /** The shape of the provider. Drawn from the seed by default. */
  readonly shape?: ShapeName | undefined;
  /** Whether the service is killed the first time that it reaches each step of an instruction. */
  readonly killsAtEachStep?: boolean;
  /** The URL of an empty database on PostgreSQL, in place of SQLite. Its scheduling is not repeated by the seed. */
  readonly database?: string | undefined;
  /** How many instances of the service work on that database at a time. One by default, and on SQLite. */
  readonly instances?: number | undefined;
  /** Whether clients send each request that they retry to two instances at once. */
  readonly sendsTwice?: boolean;
  /** The fault rates of the provider. By default they change over time. */
  readonly rates?: FaultRates;
  /** Replaces parts of the real service. */
  readonly assembly?: Partial<Assembly>;
}

/** The result of a run. */
export interface SimulationReport {
  readonly shape: ShapeName;
  /** A digest of the run. */
  readonly digest: string;
  readonly tally: Tally;
  readonly books: Books;
  readonly simulatedMs: number;
}

/** A rule was violated. The message has the seed and the last events of the subject. */
export class SimulationFailed extends Error {
  override name = 'SimulationFailed';
}

const startMs = Date.UTC(2026, 0, 2, 3, 4, 5);

/** Runs a simulation. Rejects with SimulationFailed if a rule is violated. */
export async function simulate(options: SimulationOptions): Promise<SimulationReport> {
  const disk = createDisk();
  try {
    return await new Simulation(options, disk).run();
  } finally {
    disk.wipe();
  }
}

/** The state of one run. */
class Simulation {
  readonly #options: SimulationOptions;
  readonly #disk: Disk;
  readonly #engine: Engine;
  readonly #world: World;
  readonly #bank: Bank;
  readonly #supervisor: Supervisor;
  readonly #timeoutAtMs: number;
  readonly #shape: ShapeName;
  #isCalm = false;
  /** The latest time that the wall clock has shown, in Unix milliseconds. */
  #latestWallMs = startMs;
  #failure: unknown;
  #sessionsLeft: number;

  constructor(options: SimulationOptions, disk: Disk) {
    const { seed, orders, instances = 1, killsAtEachStep = false } = options;
    const assembly = { ...real, ...options.assembly };
    this.#options = options;
    this.#disk = disk;
    this.#sessionsLeft = orders;
    this.#timeoutAtMs = worldLimits.timeoutMs + orders * worldLimits.timeoutPerOrderMs;
    const clock = createManualClock(startMs);
    const world: World = {
      clock,
      dice: createDice(seed),
      trace: createTrace(clock.monotonicMs),
      tally: createTally(),
      witness: createWitness(),
      sendsTwice: options.sendsTwice ?? false,
      isCalm: () => this.#isCalm,
      fail: (error) => {
        this.#failure ??= error;
      },
    };
    this.#world = world;
    this.#shape = options.shape ?? world.dice.fork('shape').pick(shapeNames);
    const engine = options.database === undefined ? sqliteEngine(assembly) : postgresEngine(options.database);
    this.#engine = engine;
    this.#bank = openBank(
      world,
      { shapeName: this.#shape, rates: options.rates },
      disk.provider,
      (notification) => this.#supervisor.deliver(notification),
    );
    const bank = () => this.#bank;
    const inspect = () => whenThere(this.#readBooks(), (books) => checkAlways(books, world.witness));
    this.#supervisor = createSupervisor({
      ...{ world, orders, instances, killsAtEachStep, disk, engine, bank, assembly, inspect },
    });
  }

  async run(): Promise<SimulationReport> {
    const world = this.#world;
    try {
      await this.#runWithFaults(await this.#prepare());
      await this.#calmDown();
      const books = await this.#inspectFinally();
      return {
        ...world,
        shape: this.#shape,
        digest: world.trace.digest(),
        books,
        simulatedMs: world.clock.monotonicMs(),
      };
    } catch (error) {
      throw this.#failed(error);
    } finally {
      this.#isCalm = true;
      await this.#supervisor.end();
      this.#bank.close();
    }
  }

  /** Creates the database, and registers the callers. */
  async #prepare(): Promise<Callers> {
    const [folder = ''] = this.#supervisor.folders();
    await this.#engine.prepare(folder, this.#world.dice.fork('database'));
    const opened = await this.#engine.open(folder);
    const store = opened.start({ begun: () => undefined, committed: () => {} });
    const callers = await registerCallers(store, this.#options.orders);
    await store.close();
    opened.end();
    return callers;
  }

  /** Runs all sessions with faults. */
  async #runWithFaults(callers: Callers): Promise<void> {
    const world = this.#world;
    const { instance } = this.#supervisor;
    let working: number = worldLimits.clientsAtOnce;
    let number = 0;
    const work = async () => {
      while (this.#sessionsLeft > 0) {
        this.#sessionsLeft -= 1;
        number += 1;
        await runSession({ world, callers, instance }, number);
      }
      working -= 1;
    };
    this.#supervisor.start();
    this.#bank.changeFaultLevel();
    this.#strike();
    runPerson(
      world,
      () => instance(),
      () => working === 0 && this.#isOver,
    ).catch(world.fail);
    runWatcher(
      world,
      () => instance(),
      () => this.#isOver,
    ).catch(world.fail);
    for (let client = 0; client < worldLimits.clientsAtOnce; client += 1) work().catch(world.fail);
    await this.#passUntil(() => working === 0);
  }

  #isOver = false;

  /** Starts the faults that occur at random intervals. */
  #strike(): void {
    const world = this.#world;
    const strikes: readonly [keyof typeof strikesMs, () => void][] = [
      ['kill', () => this.#supervisor.kill()],
      ['stop', () => void this.#supervisor.stop().catch(world.fail)],
      ['providerKill', () => this.#bank.kill()],
      ['weather', () => this.#bank.changeFaultLevel()],
      ['lapse', () => this.#bank.lapseOne()],
      ['wallJump', () => this.#setWall()],
    ];
    for (const [name, strike] of strikes) {
      nowAndThen(world, name, strikesMs[name], strike).catch(world.fail);
    }
  }

  #setWall(): void {
    const { clock, trace, tally, dice } = this.#world;
    const byMs = dice.below(2 * worldLimits.wallJumpMaxMs) - worldLimits.wallJumpMaxMs;
    trace.note(everybody, `the wall clock jumps by ${byMs} ms`);
    tally.count('wall clock jumps');
    this.#noteWall();
    clock.setWall(clock.nowMs() + byMs);
    this.#noteWall();
  }

  #noteWall(): void {
    this.#latestWallMs = Math.max(this.#latestWallMs, this.#world.clock.nowMs());
  }

  /** Stops all faults, lets the service finish its work, and stops it. */
  async #calmDown(): Promise<void> {
    const { clock, trace } = this.#world;
    trace.note(everybody, 'all faults stop');
    this.#isCalm = true;
    this.#bank.calm();
    this.#supervisor.start();
    this.#noteWall();
    const buyersUntilMs = this.#latestWallMs + simulatedLimits.buyerDeadlineMs + worldLimits.endingMs;
    await this.#passUntil(() => clock.nowMs() >= buyersUntilMs);
    checkNoneWaits(await this.#readBooks());
    const untilMs = clock.monotonicMs() + worldLimits.calmMs;
    await this.#passUntil(() => clock.monotonicMs() >= untilMs);
    this.#isOver = true;
    let isStopped = false;
    this.#supervisor.stopAll().then(() => {
      isStopped = true;
    }, this.#world.fail);
    await this.#passUntil(() => isStopped);
  }

  async #inspectFinally(): Promise<Books> {
    const books = await this.#readBooks();
    checkAlways(books, this.#world.witness);
    checkFinally(books, this.#world.witness);
    return books;
  }

  #readBooks(): Eventual<Books> {
    return readBooks(this.#engine, this.#supervisor.folders(), this.#disk.provider);
  }

  /** Advances the clock until a condition holds. */
  async #passUntil(condition: () => boolean): Promise<void> {
    const { clock, dice } = this.#world;
    const steps = dice.fork(`steps from ${clock.monotonicMs()}`);
    while (!condition()) {
      for (let turns = steps.upTo(worldLimits.turnsMax); turns > 0; turns -= 1) await turn();
      if (this.#engine.isInRealTime) await this.#waitWhileBusy();
      if (this.#failure !== undefined) throw this.#failure;
      clock.advance(Math.min(clock.nextDueMs() ?? simulatedLimits.pollMs, worldLimits.stepMaxMs));
      if (clock.monotonicMs() > this.#timeoutAtMs) throw new Violation(everybody, 'the run does not end');
    }
  }

  /** Waits in real time, in which PostgreSQL works and an instance takes the lead. */
  async #waitWhileBusy(): Promise<void> {
    const timeout = AbortSignal.timeout(worldLimits.busyMaxMs);
    while (this.#supervisor.isBusy() && this.#failure === undefined) {
      if (timeout.aborted) throw new Violation(everybody, 'a store does not respond, or no instance leads');
      // Leaves the processor to PostgreSQL.
      await delay(1);
    }
  }

  #failed(error: unknown): SimulationFailed {
    const { trace, clock } = this.#world;
    const { seed, orders, database, instances = 1 } = this.#options;
    const flags = database === undefined ? '' : ` --postgres --instances ${instances}`;
    const subject = error instanceof Violation ? error.subject : everybody;
    const events = trace.lastOf(subject, worldLimits.eventsShown).join('\n  ');
    const what = error instanceof Violation ? error.message : (error as Error).stack;
    const message =
      `seed ${seed}, ${orders} orders, ${this.#shape}, at ${clock.monotonicMs() / 1000} s: ${what}\n` +
      `Repeat it with: npm run simulate -- --seed ${seed} --orders ${orders} --shape ${this.#shape}${flags}\n  ${events}`;
    return new SimulationFailed(message, { cause: error });
  }
}
