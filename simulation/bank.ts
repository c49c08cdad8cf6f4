import { join } from 'node:path';
import type { PaymentSnapshot } from '../src/domain/payment.ts';
import type { Notification, PaymentInstruction, PaymentOrder } from '../src/payments/provider.ts';
import type { Course, CourseEvent, MoneyEvent } from '../src/payments/simulated/hold.ts';
import { providerFileName } from './books.ts';
import type { Dice } from './dice.ts';
import { type FaultRates, faultless, type Script, seededScript } from './faults.ts';
import { type FaultyConnection, openFaultyProvider } from './faulty-provider.ts';
import { faultLevels, odds, worldLimits } from './limits.ts';
import { differing, isDiffering, namesIn } from './parties.ts';
import { createShape, type Shape, type ShapeName } from './shapes.ts';
import { everybody } from './trace.ts';
import { sleep, type World } from './world.ts';

/** The payment provider of a world: the simulated provider, with faults, kills and restarts. */
export type Bank = ReturnType<typeof openBank>;

/** For an order whose wrong reports end: the maximum of right reports, and of wrong ones after them. */
const reportsMax = { right: 3, wrong: 4 } as const;

/** The duration of a hold that never lapses, in milliseconds. */
const foreverMs = 1_000 * 365 * 86_400_000;

/** Opens a provider of this shape in its folder. `deliver` sends a notification to the service. Without rates, they change. */
export function openBank(
  world: World,
  { shapeName, rates }: { readonly shapeName: ShapeName; readonly rates?: FaultRates | undefined },
  dataDir: string,
  deliver: (notification: Notification) => Promise<void>,
) {
  const { clock, trace, tally } = world;
  const dice = world.dice.fork('bank');
  const reports = new Map<string, { right: number; wrong: number }>();
  let isDown = false;
  const books = { file: join(dataDir, providerFileName), clock };
  const provider = openFaultyProvider({ ...books, script: faultless, deliver });
  const statusOf = (holdId: string) =>
    provider.holds().find((hold) => hold.holdId === holdId)?.status ?? 'ABSENT';
  const shape = createShape(shapeName, world, statusOf);

  /** Applies a script, adapted to the shape, with a course for the money of each order. */
  function follow(script: Script): void {
    provider.follow({
      ...script,
      repeats: shape.repeats,
      ...(!shape.lapses && { report: (_, { holdExpiresAtMs, ...payment }) => payment }),
      course: ({ holdId }) => courseOf(world.dice.fork(`course of ${holdId}`), shape),
      instruction: (instruction) => shape.fault(script.instruction(instruction), instruction),
    });
  }

  follow(faultless);

  function kill(): void {
    if (isDown || world.isCalm()) return;
    isDown = true;
    provider.kill();
    tally.count('provider kills');
    trace.note(everybody, 'the provider is killed');
    clock.after(dice.upTo(worldLimits.downMaxMs), reopen);
  }
  function reopen(): void {
    if (!isDown) return;
    isDown = false;
    provider.reopen();
    trace.note(everybody, 'the provider restarts');
  }
  function maybeKill(): void {
    if (!world.isCalm() && dice.oneIn(odds.providerKillAtCall)) kill();
  }

  /** The report of the provider. The amount is wrong for some reports on `differs-…` buyers. */
  function reportOf({ buyerId, holdId }: PaymentOrder, payment: PaymentSnapshot): PaymentSnapshot {
    if (!isDiffering(buyerId) || payment.amount === undefined) return payment;
    const left = reports.get(holdId) ?? {
      right: dice.below(reportsMax.right),
      wrong: dice.upTo(reportsMax.wrong),
    };
    reports.set(holdId, left);
    const which = left.right > 0 ? 'right' : 'wrong';
    left[which] -= 1;
    const isWrong = buyerId.startsWith(differing.always) || (which === 'wrong' && left.wrong >= 0);
    if (!isWrong) return payment;
    tally.count('fault wrong amount');
    return { ...payment, amount: payment.amount + 1n };
  }

  async function traced(
    order: PaymentOrder,
    what: string,
    call: () => Promise<PaymentSnapshot>,
  ): Promise<PaymentSnapshot> {
    trace.note(order.escrowId, `> ${what}`);
    world.witness.named(order.holdId, namesIn(order));
    maybeKill();
    try {
      const payment = reportOf(order, await call());
      maybeKill();
      trace.note(order.escrowId, `< ${what}: ${payment.status} ${payment.amount ?? ''}`);
      return payment;
    } catch (error) {
      trace.note(order.escrowId, `< ${what}: ${error instanceof Error ? error.message : error}`);
      throw error;
    }
  }

  return {
    /** Opens a connection for one instance of the service. */
    connect: (): FaultyConnection => {
      const connection = provider.connect();
      const adapted = shape.adapt(connection);
      const name = ({ kind, instructionId }: PaymentInstruction) => `${kind} ${instructionId}`;
      return {
        ...connection,
        instruct: (instruction, signal) =>
          traced(instruction, name(instruction), () => adapted.instruct(instruction, signal)),
        lookUp: (order, signal) => traced(order, 'look-up', () => adapted.lookUp(order, signal)),
      };
    },
    /** Draws a new fault level. */
    changeFaultLevel: () => {
      const name = dice.pick(Object.keys(faultLevels) as (keyof typeof faultLevels)[]);
      trace.note(everybody, `the fault level is ${name}`);
      follow(withTrace(seededScript(`weather ${dice.share()}`, rates ?? faultLevels[name]), world));
    },
    /** Kills the provider if it runs. It restarts after a while. */
    kill,
    /** Makes one of its holds lapse. */
    lapseOne: () => {
      if (isDown || !shape.lapses) return;
      const held = provider.holds().filter(({ status }) => status === 'HELD');
      if (held.length === 0) return;
      const { holdId, escrowId } = dice.pick(held);
      trace.note(escrowId, 'its hold lapses');
      tally.count('fault hold lapsed');
      provider.befall(holdId, 'LAPSE');
    },
    /** Restarts the provider if it is down, and ends all faults. */
    calm: () => {
      reopen();
      follow(faultless);
    },
    close: provider.close,
  };
}

/** Draws what happens to the money of an order without further instructions. */
function courseOf(dice: Dice, shape: Shape): Course {
  const drawn = {
    buyer: dice.oneIn(odds.mustAct),
    act: dice.pick<readonly MoneyEvent[]>([['BUYER_ACTS'], ['BUYER_ACTS'], ['BUYER_FAILS'], []]),
    isEventful: dice.oneIn(odds.afterPayout),
    events: dice.pick(shape.afterPayout),
  };
  return {
    ...(shape.awaitsBuyers &&
      drawn.buyer && { buyer: schedule(drawn.act, dice, worldLimits.buyerActsMaxMs) }),
    ...(drawn.isEventful && { afterPayout: schedule(drawn.events, dice, worldLimits.afterPayoutMaxMs) }),
    ...(!shape.lapses && { holdLastsMs: foreverMs }),
  };
}

/** Schedules events in order, each 1 to `maxMs` after the previous one. */
function schedule(events: readonly MoneyEvent[], dice: Dice, maxMs: number): readonly CourseEvent[] {
  let afterMs = 0;
  return events.map((event) => {
    afterMs += dice.upTo(maxMs);
    return { event, afterMs };
  });
}

/** A script that traces and counts its faults. */
function withTrace(script: Script, { tally, trace }: World): Script {
  function record<Fault extends { readonly kind: string }>(
    subject: string,
    what: string,
    fault: Fault,
  ): Fault {
    if (fault.kind === 'NONE') return fault;
    tally.count(`fault ${what} ${fault.kind}`);
    trace.note(subject, `fault: ${what} ${JSON.stringify(fault)}`);
    return fault;
  }
  return {
    instruction: (instruction) =>
      record(instruction.escrowId, 'instruction', script.instruction(instruction)),
    lookUp: (order) => record(order.escrowId, 'look-up', script.lookUp(order)),
    notification: (notification) =>
      record(notification.eventId, 'notification', script.notification(notification)),
  };
}

/** Calls `strike` at random intervals of up to `maxMs` until the faults stop. */
export async function nowAndThen(
  world: World,
  name: string,
  maxMs: number,
  strike: () => void,
): Promise<void> {
  const dice = world.dice.fork(name);
  while (!world.isCalm()) {
    await sleep(world, dice.upTo(maxMs));
    if (!world.isCalm()) strike();
  }
}
