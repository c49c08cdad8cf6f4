import type { PaymentProvider } from '../provider.ts';
import { createCalls } from './calls.ts';
import type { MoneyEvent } from './course.ts';
import type { Script } from './faults.ts';
import type { SimulatedHold } from './hold-rows.ts';
import { readSigned } from './notifications.ts';
import { openRun, type Run, type RunOptions } from './run.ts';
import { scriptByParties } from './script-by-parties.ts';

/** What a simulator is made of. */
export interface SimulatorOptions extends RunOptions {
  /** What goes wrong; scriptByParties if not given. */
  readonly script?: Script;
}

/** A payment provider of its own: its books outlive whoever instructs it, and itself. */
export interface Simulator {
  /** A connection to it, which stays while the simulator is killed and opened again. */
  connect(): SimulatorConnection;
  /** All holds that it has ever made, and the tombstones. */
  holds(): readonly SimulatedHold[];
  /** Makes a hold run out now. */
  lapse(holdId: string): void;
  /** Has an event happen to the money of a hold; nothing happens where it is not where that could be. */
  befall(holdId: string, event: MoneyEvent): void;
  /** Goes on by another script. */
  follow(script: Script): void;
  /**
   * Ends it as a crash would. Calls under way are not answered any more, requests and notifications on their
   * way are gone (the notifications leave again when it is reopened), calls to come reject.
   */
  kill(): void;
  /** Opens it again on the same file. */
  reopen(): void;
  /** Ends it for good. */
  close(): void;
}

/** The provider as a service sees it. Closing it leaves the simulator as it is. */
export interface SimulatorConnection extends PaymentProvider {
  /** Ends the connection as a crash of the service would: none of its calls ever settles. */
  cut(): void;
}

/** Opens the simulator of a folder. */
export function openSimulator(options: SimulatorOptions): Simulator {
  let { script = scriptByParties() } = options;
  const open = () => openRun(options, () => script);
  let run: Run | undefined = open();
  const { secret } = run;

  function running(): Run {
    if (run === undefined) throw new Error('The simulated provider does not run.');
    return run;
  }
  function end(): void {
    run?.end();
    run = undefined;
  }
  function connect(): SimulatorConnection {
    const calls = createCalls();
    return {
      checkAccess: async () => ({ kind: 'ACCEPTED' }),
      check: () => [],
      instruct: (instruction, signal) => calls.make(signal, (call) => running().instruct(instruction, call)),
      lookUp: (order, signal) => calls.make(signal, (call) => running().lookUp(order, call)),
      notificationMethod: 'POST',
      readNotification: (notification) => readSigned(secret, notification),
      close: async () => calls.close(),
      cut: calls.cut,
    };
  }

  return {
    connect,
    holds: () => running().holds(),
    lapse: (holdId) => running().lapse(holdId),
    befall: (holdId, event) => running().befall(holdId, event),
    follow: (next) => {
      script = next;
    },
    kill: end,
    reopen: () => {
      end();
      run = open();
    },
    close: end,
  };
}
