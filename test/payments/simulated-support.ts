import type { TestContext } from 'node:test';
import type { InstructionKind } from '../../src/domain/escrow.ts';
import type { Notification, PaymentInstruction, PaymentOrder } from '../../src/payments/provider.ts';
import { faultless, type InstructionFault, type Script } from '../../src/payments/simulated/faults.ts';
import type { SignedNotification } from '../../src/payments/simulated/notifications.ts';
import {
  openSimulator,
  type Simulator,
  type SimulatorConnection,
} from '../../src/payments/simulated/simulator.ts';
import { createManualClock, type ManualClock } from '../support/clock.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

/** The start of every test's clock. */
export const startMs = Date.UTC(2026, 0, 2, 3, 4, 5);

/** What signs the notifications of every test. */
export const testSecret: Uint8Array = Buffer.alloc(32, 7);

/** A simulator whose notifications are kept. */
export interface TestSimulator {
  readonly simulator: Simulator;
  readonly connection: SimulatorConnection;
  readonly clock: ManualClock;
  readonly dataDir: string;
  /** What was posted, taken or not. */
  readonly posted: SignedNotification[];
  /** The same, as their receiver read them. */
  readonly events: Notification[];
  /** Moves the clock on in small steps, and lets what follows happen. */
  pass(ms: number): Promise<void>;
}

/** What a test may choose. */
export interface TestSimulatorOptions {
  readonly script?: Script;
  readonly dataDir?: string;
  /** Whether the receiver takes it. */
  readonly receive?: (notification: SignedNotification, signal: AbortSignal) => Promise<void>;
}

/** Opens a simulator in a folder of its own, with a clock that stands; closed after the test. */
export function openTestSimulator(
  test: Pick<TestContext, 'after'>,
  {
    script = faultless,
    dataDir = temporaryFolder(test),
    receive = async () => {},
  }: TestSimulatorOptions = {},
): TestSimulator {
  const clock = createManualClock(startMs);
  const posted: SignedNotification[] = [];
  const events: Notification[] = [];
  const simulator = openSimulator({
    dataDir,
    clock,
    script,
    secret: testSecret,
    deliver: (notification, signal) => {
      posted.push(notification);
      events.push(connection.readNotification(sent(notification, clock)));
      return receive(notification, signal);
    },
  });
  test.after(() => simulator.close());
  const connection = simulator.connect();
  return {
    simulator,
    connection,
    clock,
    dataDir,
    posted,
    events,
    pass: async (ms) => {
      for (let left = ms; left > 0; left -= 10) {
        clock.advance(Math.min(left, 10));
        await turn();
      }
    },
  };
}

/** A posted notification as its receiver sees it now. */
export function sent({ headers, body }: SignedNotification, clock: ManualClock) {
  const entries = Object.entries(headers).map(([name, value]) => [name, [value]]);
  return {
    method: 'POST',
    query: '',
    headers: Object.fromEntries(entries),
    body,
    nowS: Math.floor(clock.nowMs() / 1000),
  };
}

/** An order that differs from others by its name. */
export function order(name = '1', parties: Partial<PaymentOrder> = {}): PaymentOrder {
  return {
    holdId: `hold-${name}`,
    escrowId: `ES-2026-${name}`,
    amount: 128_000_000n,
    currency: 'CNY',
    buyerId: 'buyer',
    sellerId: 'seller',
    openedAtMs: startMs,
    reference: undefined,
    ...parties,
  };
}

/** An instruction for an order, under an id that is its own. */
export function instruction(
  kind: InstructionKind,
  of: PaymentOrder = order(),
  attempt = '',
): PaymentInstruction {
  return { ...of, kind, instructionId: `${of.holdId}/${kind}${attempt}` };
}

/** A signal that nobody aborts. */
export const never = new AbortController().signal;

/** Gives the faults in turn to sendings of instructions, and none after them. */
export function faultsInTurn(...faults: readonly InstructionFault[]): Script {
  const left = [...faults];
  return { ...faultless, instruction: () => left.shift() ?? { kind: 'NONE' } };
}

/** Lets everything happen that needs no time. */
export function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** What has become of a promise by now. */
export async function fate(promise: Promise<unknown>): Promise<'RESOLVED' | 'REJECTED' | 'PENDING'> {
  let result: 'RESOLVED' | 'REJECTED' | 'PENDING' = 'PENDING';
  promise.then(
    () => {
      result = 'RESOLVED';
    },
    () => {
      result = 'REJECTED';
    },
  );
  await turn();
  return result;
}
