import { join } from 'node:path';
import type { PaymentSnapshot } from '../src/domain/payment.ts';
import type { Notification, PaymentInstruction, PaymentOrder } from '../src/payments/provider.ts';
import type { Course, CourseEvent, MoneyEvent } from '../src/payments/simulated/hold.ts';
import { providerFileName } from './books.ts';
import type { Dice } from './dice.ts';
import { faultless, type Script, seededScript } from './faults.ts';
import { type FaultyConnection, openFaultyProvider } from './faulty-provider.ts';
import { faultLevels, odds, worldLimits } from './limits.ts';
import { differing, isDiffering, namesIn } from './parties.ts';
import { createShape, type Shape, type ShapeName } from './shapes.ts';
import { everybody } from './trace.ts';
import { sleep, type World } from './world.ts';

/** The provider of a world: the simulated one, under the world's weather, and now and then down. */
export interface Bank {
  /** A connection for one life of the service. */
  connect(): FaultyConnection;
  /** Chooses what goes wrong from now on. */
  changeFaultRates(): void;
  /** Kills it, if it runs; it comes back by itself. */
  kill(): void;
  /** Makes a hold run out that it holds. */
  lapseOne(): void;
  /** Runs from now on, and nothing goes wrong. */
  calm(): void;
  close(): void;
}

/** How many right reports and then wrong ones there are of an order at most, where the wrong ones end. */
const reportsMax = { right: 3, wrong: 4 } as const;

/** How long a hold lasts that never lapses, in milliseconds. */
const foreverMs = 1_000 * 365 * 86_400_000;

/** Opens the provider in its folder, in a shape; `deliver` takes its notifications to the service. */
export function openBank(
  world: World,
  shapeName: ShapeName,
  dataDir: string,
  deliver: (notification: Notification) => Promise<void>,
): Bank {
  const { clock, trace, tally } = world;
  const dice = world.dice.fork('bank');
  const reports = new Map<string, { right: number; wrong: number }>();
  let isDown = false;
  const books = { file: join(dataDir, providerFileName), clock };
  const provider = openFaultyProvider({ ...books, script: faultless, deliver });
  const statusOf = (holdId: string) =>
    provider.holds().find((hold) => hold.holdId === holdId)?.status ?? 'ABSENT';
  const shape = createShape(shapeName, world, statusOf);

  /** A script as the provider's shape has it, with what becomes of the money of each order. */
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
    trace.note(everybody, 'the provider is back');
  }
  function perhapsKill(): void {
    if (!world.isCalm() && dice.oneIn(odds.providerKillAtCall)) kill();
  }

  /** What the provider says, with another amount where the buyer asks for it. */
  function reported({ buyerId, holdId }: PaymentOrder, payment: PaymentSnapshot): PaymentSnapshot {
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

  async function called(
    order: PaymentOrder,
    what: string,
    call: () => Promise<PaymentSnapshot>,
  ): Promise<PaymentSnapshot> {
    trace.note(order.escrowId, `> ${what}`);
    world.witness.named(order.holdId, namesIn(order));
    perhapsKill();
    try {
      const payment = reported(order, await call());
      perhapsKill();
      trace.note(order.escrowId, `< ${what}: ${payment.status} ${payment.amount ?? ''}`);
      return payment;
    } catch (error) {
      trace.note(order.escrowId, `< ${what}: ${error instanceof Error ? error.message : error}`);
      throw error;
    }
  }

  return {
    connect: () => {
      const connection = provider.connect();
      const adapted = shape.adapt(connection);
      const name = ({ kind, instructionId }: PaymentInstruction) => `${kind} ${instructionId}`;
      return {
        ...connection,
        instruct: (instruction, signal) =>
          called(instruction, name(instruction), () => adapted.instruct(instruction, signal)),
        lookUp: (order, signal) => called(order, 'look-up', () => adapted.lookUp(order, signal)),
      };
    },
    changeFaultRates: () => {
      const weather = dice.pick(Object.keys(faultLevels) as (keyof typeof faultLevels)[]);
      trace.note(everybody, `the weather is ${weather}`);
      follow(counted(seededScript(`weather ${dice.share()}`, faultLevels[weather]), world));
    },
    kill,
    lapseOne: () => {
      if (isDown || !shape.lapses) return;
      const held = provider.holds().filter(({ status }) => status === 'HELD');
      if (held.length === 0) return;
      const { holdId, escrowId } = dice.pick(held);
      trace.note(escrowId, 'its hold runs out');
      tally.count('fault hold ran out');
      provider.befall(holdId, 'LAPSE');
    },
    calm: () => {
      reopen();
      follow(faultless);
    },
    close: provider.close,
  };
}

/** What becomes of the money of an order by itself, in a provider of this shape. */
function courseOf(dice: Dice, shape: Shape): Course {
  const drawn = {
    buyer: dice.oneIn(odds.mustAct),
    act: dice.pick<readonly MoneyEvent[]>([['BUYER_ACTS'], ['BUYER_ACTS'], ['BUYER_FAILS'], []]),
    isEventful: dice.oneIn(odds.afterPayout),
    events: dice.pick(shape.afterPayout),
  };
  return {
    ...(shape.awaitsBuyers && drawn.buyer && { buyer: coming(drawn.act, dice, worldLimits.buyerActsMaxMs) }),
    ...(drawn.isEventful && { afterPayout: coming(drawn.events, dice, worldLimits.afterPayoutMaxMs) }),
    ...(!shape.lapses && { holdLastsMs: foreverMs }),
  };
}

/** Events one after the other, each some time after the one before. */
function coming(events: readonly MoneyEvent[], dice: Dice, maxMs: number): readonly CourseEvent[] {
  let afterMs = 0;
  return events.map((event) => {
    afterMs += dice.upTo(maxMs);
    return { event, afterMs };
  });
}

/** The same script, whose faults are noted. */
function counted(script: Script, { tally, trace }: World): Script {
  function noted<Fault extends { readonly kind: string }>(
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
    instruction: (instruction) => noted(instruction.escrowId, 'instruction', script.instruction(instruction)),
    lookUp: (order) => noted(order.escrowId, 'look-up', script.lookUp(order)),
    notification: (notification) =>
      noted(notification.eventId, 'notification', script.notification(notification)),
  };
}

/** Calls back again and again, each time after a while, until the world is calm. */
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
