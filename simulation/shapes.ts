import type { PaymentSnapshot } from '../src/domain/payment.ts';
import type { PaymentInstruction, PaymentOrder } from '../src/payments/provider.ts';
import type { MoneyEvent } from '../src/payments/simulated/hold.ts';
import type { InstructionFault } from './faults.ts';
import { DuplicateKey, type FaultyConnection } from './faulty-provider.ts';
import { odds, worldLimits } from './limits.ts';
import { sleep, type World } from './world.ts';

/** The shapes that providers have: the simulated one's own, and those of the two real ones. */
export const shapeNames = ['SIMULATED', 'STRIPE', 'MANGOPAY'] as const;

/** One of `shapeNames`. */
export type ShapeName = (typeof shapeNames)[number];

/** What differs between providers, as far as the service can notice. */
export interface Shape {
  /** Whether holds run out. */
  readonly lapses: boolean;
  /** Whether it may ask a buyer to act first. */
  readonly awaitsBuyers: boolean;
  /** What may happen to money after its pay-out, as sequences of events. */
  readonly afterPayout: readonly (readonly MoneyEvent[])[];
  /** What it makes of an instruction whose id it has seen. */
  readonly repeats: 'REPLAYED' | 'REFUSED';
  /** A fault as it can befall this provider. */
  fault(fault: InstructionFault, instruction: PaymentInstruction): InstructionFault;
  /** The connection as the service's own code for this provider makes use of it. */
  adapt(connection: FaultyConnection): Adapted;
}

/** The two verbs that go by a provider's own rules. */
export type Adapted = Pick<FaultyConnection, 'instruct' | 'lookUp'>;

/** What is between the id of an instruction and the number of its sending, where each has a key of its own. */
const sendingMark = '/';

/** The instruction that was given under a key. */
export const instructionOf = (key: string): string => key.split(sendingMark)[0] ?? key;

const returns: readonly (readonly MoneyEvent[])[] = [['RETURN_ALL']];
const contests: readonly (readonly MoneyEvent[])[] = [
  ['RETURN_PART'],
  ['RETURN_PART', 'RETURN_PART'],
  ['RETURN_PART', 'RETURN_ALL'],
  ['DISPUTE'],
  ['DISPUTE', 'DISPUTE_WON'],
  ['DISPUTE', 'DISPUTE_LOST'],
  ['RETURN_PART', 'DISPUTE', 'DISPUTE_WON', 'RETURN_ALL'],
];

/** Makes the shape of a world's provider. `statusOf` is where the money of a hold is. */
export function createShape(
  name: ShapeName,
  world: World,
  statusOf: (holdId: string) => PaymentSnapshot['status'],
): Shape {
  const plain: Shape = {
    lapses: true,
    awaitsBuyers: true,
    afterPayout: [...returns, ...contests],
    repeats: 'REPLAYED',
    fault: (fault) => fault,
    adapt: (connection) => connection,
  };
  switch (name) {
    case 'SIMULATED':
      return plain;
    case 'STRIPE':
      return {
        ...plain,
        // Each sending has its own key, and none is carried out after a later one.
        fault: (fault, { kind }) =>
          fault.kind === 'LATE_REQUEST' && kind !== 'FREEZE' ? { kind: 'LOST_ANSWER' } : fault,
        adapt: withKeysOfStripe(world, statusOf),
      };
    case 'MANGOPAY':
      return {
        ...plain,
        lapses: false,
        awaitsBuyers: false,
        afterPayout: returns,
        repeats: 'REFUSED',
        fault: (fault) => (fault.kind === 'SHORT_HOLD' ? { kind: 'NONE' } : fault),
        adapt: askingAfterDuplicates,
      };
  }
}

/**
 * Pays out and back under a fresh key each time, for the hold's own state forbids doing it twice. The FREEZE has its one key,
 * and an error that is saved under it is all that the key answers for a while; a CANCEL of what was not made needs it, too.
 */
function withKeysOfStripe(world: World, statusOf: (holdId: string) => PaymentSnapshot['status']) {
  const dice = world.dice.fork('saved errors');
  const saved = new Map<string, number>();
  let sendings = 0;

  function failIfSaved({ kind, holdId }: PaymentInstruction): void {
    const untilMs = saved.get(holdId) ?? 0;
    const needsKey = kind === 'FREEZE' || (kind === 'CANCEL' && statusOf(holdId) === 'ABSENT');
    if (needsKey && world.clock.monotonicMs() < untilMs) throw new Error('The key has a saved error.');
  }
  return (connection: FaultyConnection): Adapted => ({
    lookUp: connection.lookUp,
    instruct: async (instruction, signal) => {
      const { kind, holdId, instructionId } = instruction;
      failIfSaved(instruction);
      if (kind !== 'FREEZE') {
        sendings += 1;
        const key = `${instructionId}${sendingMark}${sendings}`;
        return connection.instruct({ ...instruction, instructionId: key }, signal);
      }
      const isSaved = !saved.has(holdId) && !world.isCalm() && dice.oneIn(odds.savedError);
      if (!isSaved) return connection.instruct(instruction, signal);
      saved.set(holdId, world.clock.monotonicMs() + worldLimits.savedErrorMs);
      world.tally.count('fault saved error');
      // It may have been carried out before the error.
      if (dice.oneIn(2)) await connection.instruct(instruction, signal);
      return failAfter(world, dice.upTo(worldLimits.savedErrorDelayMs));
    },
  });
}

async function failAfter(world: World, ms: number): Promise<never> {
  await sleep(world, ms);
  throw new Error('The provider failed, and saved that.');
}

/** Asks where the money is, where a key that was used before is refused. */
function askingAfterDuplicates({ instruct, lookUp }: FaultyConnection): Adapted {
  return {
    lookUp,
    instruct: async (instruction, signal) => {
      try {
        return await instruct(instruction, signal);
      } catch (error) {
        if (!(error instanceof DuplicateKey)) throw error;
        const order: PaymentOrder = instruction;
        return lookUp(order, signal);
      }
    },
  };
}
