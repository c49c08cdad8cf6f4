import { createCalendar } from '../src/domain/calendar.ts';
import { type Clock, createBusinessClock } from '../src/domain/clock.ts';
import type { PublishedCheckpoint } from '../src/evidence/log/publication.ts';
import { createSigner } from '../src/evidence/log/signer.ts';
import type { Logger } from '../src/lib/log.ts';
import { createBackupPlaces } from '../src/operations/backup/places.ts';
import { buildInfo } from '../src/packaging/build-info.ts';
import type { Notification, PaymentInstruction } from '../src/payments/provider.ts';
import type { InstanceFacts } from '../src/store/instance-commands.ts';
import { type Execute, executorOf, leads, type Store, type StoreRequest } from '../src/store/store.ts';
import type { Assembly } from './assembly.ts';
import { keyRing } from './callers.ts';
import type { Opened, Place, Strike } from './engine.ts';
import type { FaultyConnection } from './faulty-provider.ts';
import { simulatedLimits, worldLimits } from './limits.ts';
import { createListener, type Listener } from './listener.ts';
import { partyRules } from './parties.ts';
import { deployment, sleep, turn, type World } from './world.ts';

/** One process of the service, from its start until it is killed or stopped. */
export interface Instance {
  /** Its name in the trace. */
  readonly name: string;
  readonly folder: string;
  readonly listener: Listener;
  /** Executes commands of the store. */
  readonly execute: Execute;
  /** Waits for the work of a client. Rejects with ConnectionLost if the instance ends first. */
  during<T>(work: () => Promise<T>): Promise<T>;
  take(notification: Notification): Promise<void>;
  /** The published checkpoint of the evidence log. */
  checkpoint(): PublishedCheckpoint | undefined;
  /** Starts the signer and the recovery of open orders. */
  start(): Promise<void>;
  /** Whether its store is executing, or has no connection. */
  isBusy(): boolean;
  /** Whether it does the background work of all instances. */
  isLeading(): boolean;
  /** Fails the current transaction of its store. */
  fail(place: Place): void;
  /** Ends the instance at once. Nothing that it still does has an effect. */
  kill(): void;
  /** Ends the instance as SIGTERM does. */
  stop(): Promise<void>;
  /** Closes the files of a killed instance. */
  close(): Promise<void>;
}

interface InstanceOptions {
  readonly world: World;
  readonly name: string;
  readonly folder: string;
  readonly opened: Opened;
  readonly connection: FaultyConnection;
  readonly assembly: Assembly;
  readonly newInstructionId: () => string;
  readonly random: () => number;
  readonly log: Logger;
  /** Returns the fault of the write transaction that begins now, or undefined if there is none. */
  readonly strike: (instance: Instance) => Strike | undefined;
  /** Called at each point where a kill may make a difference. It may kill this instance. */
  readonly point: (name: string, instance: Instance) => void;
  /** Called when a step of an instruction is on disk. It may kill this instance. */
  readonly step: (name: string, instance: Instance) => void;
  /** Called when the instance begins background work. */
  readonly begins: (instance: Instance) => void;
}

/** The service is down, or ended before it responded. */
export class ConnectionLost extends Error {
  override name = 'ConnectionLost';
}

const timeZone = 'Asia/Shanghai';

/** How many turns of the event loop pass before the files of a killed instance are closed. */
const turnsBeforeClosing = 3;

/** The simulation takes no backups, and checks no deployment. */
const noChild = () => {
  throw new Error('A simulated instance starts no processes.');
};
const noBackups = { run: noChild, places: createBackupPlaces(undefined, undefined), keepMin: 1 };

/** Starts an instance on the database in a folder. */
export function startInstance(options: InstanceOptions): Instance {
  const { world, name, folder, connection, random, newInstructionId, log } = options;
  const clock = createInstanceClock(world.clock);
  let isDead = false;
  const opened = options.opened.start({
    begun: () => (isDead ? undefined : options.strike(instance)),
    committed: () => reach('after a commit'),
  });
  void opened.lost.then((error) => isDead || world.fail(error));
  const openCalls = createOpenCalls();

  /** Does some work. Never settles if the instance is dead by then. */
  async function unlessDead<T>(work: () => Promise<T>): Promise<T> {
    if (isDead) return never();
    const [outcome] = await Promise.allSettled([work()]);
    if (isDead) return never();
    if (outcome.status === 'rejected') throw outcome.reason;
    return outcome.value;
  }
  /** Does some work, with a point before it and a point after it. */
  function between<T>(name: string, work: () => Promise<T>): Promise<T> {
    reach(`before ${name}`);
    return unlessDead(() => work().finally(() => reach(`after ${name}`)));
  }
  function reach(point: string): void {
    if (!isDead) options.point(point, instance);
  }

  function reachStep(request: StoreRequest): void {
    const name = stepOf(request);
    if (name !== undefined && !isDead) options.step(name, instance);
  }

  const store: Store = {
    ...opened,
    execute: (request) => {
      if (!isDead && beginsWork(request)) options.begins(instance);
      return unlessDead(() => opened.execute(request).finally(() => reachStep(request)));
    },
  };
  const file = options.assembly.createCheckpointFile(folder);
  const signer = createSigner({
    ...{ execute: executorOf(store), instances: store.instances, keyRing, clock, log },
    origin: 'simulated.invalid/log',
    madeUpOrigin: '',
    file: { ...file, write: (note) => between('a checkpoint is written', () => file.write(note)) },
  });
  const { service, calls } = options.assembly.assemble({
    ...deployment,
    ...{ store, keyRing, clock, random, newInstructionId, log },
    businessClock: createBusinessClock(clock),
    isClockAdvanceable: false,
    ...{ mail: undefined, publicUrl: undefined },
    partyRules,
    provider: {
      ...connection,
      instruct: (instruction, signal) =>
        between(instruction.kind, () => {
          sends(world, name, instruction);
          const { instructionId } = instruction;
          return connection
            .instruct(instruction, signal)
            .finally(() => world.witness.responded(name, instructionId));
        }),
      lookUp: (order, signal) => between('look-up', () => connection.lookUp(order, signal)),
    },
    calendar: createCalendar(timeZone),
    filingClock: { setByS: () => 0, refresh: async () => {} },
    reload: async () => [],
    readOverview: async () => ({ faults: [], metrics: [], samples: [] }),
    isRolledBack: () => false,
    limits: simulatedLimits,
    webhooks: { networks: [], plainLoopback: false, proxy: undefined, authorities: undefined },
    publication: signer,
    backups: noBackups,
    check: noChild,
  });
  const listener = createListener(calls);
  const { during } = openCalls;

  const instance: Instance = {
    ...{ name, folder },
    listener: {
      signed: (...call) => during(() => listener.signed(...call)),
      identified: (...call) => during(() => listener.identified(...call)),
    },
    execute: executorOf(store),
    during,
    take: (notification) => during(() => service.notifications.accept(notification)),
    checkpoint: signer.current,
    start: async () => {
      if (store.instances !== undefined)
        await executorOf(store)({ kind: 'JoinInstances', facts: factsOf(name) });
      await signer.start();
      await service.start();
    },
    isBusy: () => opened.requestsInFlight() > 0 || opened.findFault() !== undefined,
    isLeading: () => leads(opened),
    fail: options.opened.fail,
    kill: () => {
      isDead = true;
      options.opened.cut();
      clock.end();
      connection.cut();
      openCalls.lose();
    },
    stop: async () => {
      openCalls.rejectNew();
      await Promise.race([openCalls.ended(), sleep(world, worldLimits.drainMs)]);
      await service.stop();
      await connection.close();
      await signer.stop();
      openCalls.lose();
      if (isDead) return;
      await opened.close();
      options.opened.end();
    },
    close: async () => {
      for (let turns = 0; turns < turnsBeforeClosing; turns += 1) await turn();
      await opened.close();
      options.opened.end();
    },
  };
  return instance;
}

/** Records that an instance sends an instruction, which no other one may be waiting for. */
function sends(
  { clock, witness, fail }: World,
  name: string,
  { instructionId, escrowId }: PaymentInstruction,
): void {
  const nowMs = clock.nowMs();
  const untilMs = nowMs + simulatedLimits.answerTimeoutMs - worldLimits.stepMaxMs;
  try {
    witness.sends(name, { instructionId, escrowId, nowMs, untilMs });
  } catch (error) {
    fail(error);
  }
}

/** What an instance reports of itself to the others. */
const factsOf = (host: string): InstanceFacts => ({
  ...{ host, processId: process.pid, version: buildInfo.version, sinceS: 0 },
  ...{ provider: 'simulated', timeZone, masterKeys: [] },
});

/** Whether a request is the first of a run of background work, which a service sends at once when it finds that it leads. */
const beginsWork = ({ effect }: StoreRequest): boolean =>
  effect?.kind === 'ListReleased' || (effect?.kind === 'ListDue' && !effect.hasFailed);

/** Returns the step of an instruction that a request stores, or undefined if it stores none. */
function stepOf({ effect }: StoreRequest): string | undefined {
  if (effect?.kind === 'OpenEscrow') return 'after FREEZE is prepared';
  if (effect?.kind === 'PrepareResolution') return `after ${effect.resolution} is prepared`;
  if (effect?.kind === 'RecordSent') return 'after an instruction is recorded as sent';
  return effect?.kind === 'UpdateOrder' ? `after ${effect.update.from} to ${effect.update.to}` : undefined;
}

/** Creates a clock whose timers are cancelled when the instance ends. */
function createInstanceClock(clock: Clock): Clock & { end(): void } {
  const waiting = new Set<() => void>();
  let isEnded = false;
  return {
    nowMs: clock.nowMs,
    monotonicMs: clock.monotonicMs,
    after: (ms, callback) => {
      if (isEnded) return () => {};
      const cancel = clock.after(ms, () => {
        waiting.delete(cancel);
        callback();
      });
      waiting.add(cancel);
      return () => {
        waiting.delete(cancel);
        cancel();
      };
    },
    end: () => {
      isEnded = true;
      for (const cancel of waiting) cancel();
    },
  };
}

/** Creates the set of open calls, which clients wait for. */
function createOpenCalls() {
  const open = new Set<(error: Error) => void>();
  let isRejecting = false;
  let onIdle = () => {};
  return {
    during: async <T>(work: () => Promise<T>): Promise<T> => {
      if (isRejecting) throw new ConnectionLost('The service accepts no calls.');
      const { promise: lost, reject } = Promise.withResolvers<never>();
      open.add(reject);
      try {
        return await Promise.race([work(), lost]);
      } finally {
        open.delete(reject);
        if (open.size === 0) onIdle();
      }
    },
    rejectNew: () => {
      isRejecting = true;
    },
    lose: () => {
      isRejecting = true;
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
