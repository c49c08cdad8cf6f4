import type { PaymentSnapshot } from '../src/domain/payment.ts';
import type { PaymentInstruction, PaymentOrder } from '../src/payments/provider.ts';
import type { MoneyEvent } from '../src/payments/simulated/hold.ts';
import type { InstructionFault } from './faults.ts';
import { DuplicateKey, type FaultyConnection } from './faulty-provider.ts';
import { odds, worldLimits } from './limits.ts';
import { sleep, type World } from './world.ts';

/** The provider shapes: that of the simulated provider, and those of the two real ones. */
export const shapeNames = ['SIMULATED', 'STRIPE', 'MANGOPAY'] as const;

/** One of `shapeNames`. */
export type ShapeName = (typeof shapeNames)[number];

/** The differences between providers that are visible to the service. */
export interface Shape {
  /** Whether holds expire. */
  readonly lapses: boolean;
  /** Whether the provider may require an action of the buyer. */
  readonly awaitsBuyers: boolean;
  /** The sequences of events that are possible after a pay-out. */
  readonly afterPayout: readonly (readonly MoneyEvent[])[];
  /** How the provider treats an instruction with a known id. */
  readonly repeats: 'REPLAYED' | 'REFUSED';
  /** Returns the fault, or another one that this provider can have. */
  fault(fault: InstructionFault, instruction: PaymentInstruction): InstructionFault;
  /** Returns the connection, used in the same way as the service's adapter for this provider uses it. */
  adapt(connection: FaultyConnection): Adapted;
}

/** The two methods that differ between providers. */
export type Adapted = Pick<FaultyConnection, 'instruct' | 'lookUp'>;

/** Separates the id of an instruction from the number of the attempt, if each attempt has its own key. */
const attemptMark = '/';

/** Returns the id of the instruction that was sent under a key. */
export const instructionOf = (key: string): string => key.split(attemptMark)[0] ?? key;

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

/** Creates the shape of the provider. `statusOf` returns the provider status of a hold. */
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
        // Each attempt has its own key, and no attempt takes effect after a later one.
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
        adapt: lookingUpDuplicates,
      };
  }
}

/**
 * Sends each RELEASE and REFUND under a new key, because the state of the hold prevents a second one. A FREEZE has one
 * key. If an error is saved under that key, the key returns that error for some time. A CANCEL without a hold needs
 * the key of the FREEZE, too.
 */
function withKeysOfStripe(world: World, statusOf: (holdId: string) => PaymentSnapshot['status']) {
  const dice = world.dice.fork('saved errors');
  const saved = new Map<string, number>();
  let attempts = 0;

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
        attempts += 1;
        const key = `${instructionId}${attemptMark}${attempts}`;
        return connection.instruct({ ...instruction, instructionId: key }, signal);
      }
      const isSaved = !saved.has(holdId) && !world.isCalm() && dice.oneIn(odds.savedError);
      if (!isSaved) return connection.instruct(instruction, signal);
      saved.set(holdId, world.clock.monotonicMs() + worldLimits.savedErrorMs);
      world.tally.count('fault saved error');
      // The instruction may have taken effect before the error.
      if (dice.oneIn(2)) await connection.instruct(instruction, signal);
      return failAfter(world, dice.upTo(worldLimits.savedErrorDelayMs));
    },
  });
}

async function failAfter(world: World, ms: number): Promise<never> {
  await sleep(world, ms);
  throw new Error('The provider failed and saved the error under the key.');
}

/** Looks up the payment if the provider rejects a key that was used before. */
function lookingUpDuplicates({ instruct, lookUp }: FaultyConnection): Adapted {
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
