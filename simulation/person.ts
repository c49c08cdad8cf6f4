import { type Reason, Refusal } from '../src/domain/reason.ts';
import type { Decision } from '../src/domain/resolution.ts';
import type { EscrowCase } from '../src/store/reconciliation-commands.ts';
import { isDiffering } from './bank.ts';
import { operator } from './callers.ts';
import { ConnectionLost, type Life } from './life.ts';
import { strikesMs } from './limits.ts';
import { must } from './violation.ts';
import { sleep, type World } from './world.ts';

/** How many orders a person looks at at a time. */
const casesAtATime = 20;
/** The refusals that a decision may get. */
const expected: readonly Reason[] = ['ESCROW_STATE_CONFLICT', 'UNAVAILABLE'];
const decisions: readonly Decision[] = ['LOOK_AGAIN', 'ACCEPT', 'RETURN'];

/** Looks again and again at the orders that wait for a person, and decides, until told to stop. */
export async function runPerson(world: World, life: () => Life, isOver: () => boolean): Promise<void> {
  const dice = world.dice.fork('person');
  let decided = 0;

  async function decide({ execute }: Life, { order, review }: EscrowCase): Promise<void> {
    const { escrowId, buyerId } = order;
    must(isDiffering(buyerId), escrowId, `it needs a person: ${review}`);
    if (!world.isCalm() && dice.oneIn(3)) return;
    const decision = dice.pick(decisions);
    decided += 1;
    world.trace.note(escrowId, `a person decides ${decision}; it is ${order.state}: ${review}`);
    world.tally.count(`decision ${decision}`);
    try {
      const [instructionId, nowMs] = [`person-${decided}`, world.clock.nowMs()];
      await execute({ kind: 'Decide', by: operator, escrowId, decision, instructionId, nowMs });
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      world.trace.note(escrowId, `the decision is refused: ${error.message}`);
      must(expected.includes(error.reason), escrowId, error.message);
    }
  }

  while (!isOver()) {
    await sleep(world, dice.upTo(strikesMs.decision));
    try {
      const current = life();
      await current.during(async () => {
        const page = { from: undefined, size: casesAtATime };
        const selection = { state: undefined, needsReview: true };
        const { items } = await current.execute({ kind: 'ListCases', selection, page });
        for (const item of items) await decide(current, item);
      });
    } catch (error) {
      if (!(error instanceof ConnectionLost)) throw error;
    }
  }
}
