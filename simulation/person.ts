import { createCalendar } from '../src/domain/calendar.ts';
import { ApiError, type Reason } from '../src/domain/reason.ts';
import type { Decision } from '../src/domain/resolution.ts';
import type { EscrowCase } from '../src/store/reconciliation-commands.ts';
import { operator } from './callers.ts';
import { ConnectionLost, type Instance } from './instance.ts';
import { odds, strikesMs } from './limits.ts';
import { everybody } from './trace.ts';
import { must } from './violation.ts';
import { sleep, type World } from './world.ts';

/** How many orders an operator reads at a time. */
const casesAtATime = 20;
/** The decisions that the runbook allows. ACCEPT for a CLOSED order would leave its hold at the provider. */
const possibleFor = ({ order: { state } }: EscrowCase): readonly (Decision | 'CLOSE')[] => {
  if (state === 'CLOSED') return ['LOOK_AGAIN', 'RETURN'];
  return state === 'UNPAID' ? [...decisions, 'CLOSE'] : decisions;
};
/** The errors that a decision may return. */
const expected: readonly Reason[] = ['ESCROW_STATE_CONFLICT', 'UNAVAILABLE'];
const decisions: readonly Decision[] = ['LOOK_AGAIN', 'ACCEPT', 'RETURN'];

const page = { from: undefined, size: casesAtATime };
const anyCase = { state: undefined, needsReview: false };
const calendar = createCalendar('Asia/Shanghai');

/**
 * Simulates an operator until `isOver`: reads the orders in review repeatedly and decides about them. Sometimes closes
 * or stops an order that waits for the provider.
 */
export async function runPerson(
  world: World,
  instance: () => Instance,
  isOver: () => boolean,
): Promise<void> {
  const dice = world.dice.fork('person');
  let decided = 0;

  async function decideAbout(current: Instance, found: EscrowCase): Promise<void> {
    if (!world.isCalm() && dice.oneIn(3)) return;
    await decide(current, found, dice.pick(possibleFor(found)));
  }

  /** Closes or stops an order that waits for the provider or for its buyer. */
  async function endWaiting(current: Instance): Promise<void> {
    const { items } = await current.execute({ kind: 'ListCases', selection: anyCase, page });
    const waiting = items.filter(({ review, open }) => review === undefined && open.length > 0);
    if (waiting.length === 0) return;
    const found = dice.pick(waiting);
    const canClose = found.order.state === 'UNPAID' && dice.oneIn(2);
    await decide(current, found, canClose ? 'CLOSE' : 'STOP');
  }

  async function decide(
    { execute }: Instance,
    found: EscrowCase,
    decision: Decision | 'CLOSE',
  ): Promise<void> {
    const { order, review } = found;
    const { escrowId, state } = order;
    decided += 1;
    if (review !== undefined) world.witness.reviewed(escrowId);
    world.trace.note(escrowId, `an operator decides ${decision}; the order is ${state}: ${review}`);
    world.tally.count(`decision ${decision}`);
    try {
      const [instructionId, nowMs] = [`person-${decided}`, world.clock.nowMs()];
      if (decision === 'CLOSE') {
        world.witness.closing(escrowId);
        const at = { atMs: nowMs, timestamp: calendar.timestamp(nowMs) };
        await execute({ kind: 'CloseOrder', by: operator, escrowId, at });
      } else await execute({ kind: 'Decide', by: operator, escrowId, decision, instructionId, nowMs });
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      world.trace.note(escrowId, `the decision is rejected: ${error.message}`);
      must(expected.includes(error.reason), escrowId, error.message);
    }
  }

  while (!isOver()) {
    await sleep(world, dice.upTo(strikesMs.decision));
    try {
      const current = instance();
      await current.during(async () => {
        const selection = { state: undefined, needsReview: true };
        const { items } = await current.execute({ kind: 'ListCases', selection, page });
        for (const item of items) await decideAbout(current, item);
        if (!world.isCalm() && dice.oneIn(odds.endWaiting)) await endWaiting(current);
      });
    } catch (error) {
      if (!(error instanceof ConnectionLost)) throw error;
    }
  }
}

/**
 * Reads the newest checkpoint of the evidence log at random intervals until `isOver`. Salts are random, so a seed does
 * not repeat roots. The trace has only tree sizes.
 */
export async function runWatcher(
  world: World,
  instance: () => Instance,
  isOver: () => boolean,
): Promise<void> {
  const dice = world.dice.fork('watcher');
  while (!isOver()) {
    await sleep(world, dice.upTo(strikesMs.look));
    try {
      const current = instance();
      const checkpoint = await current.during(async () => current.checkpoint());
      if (checkpoint === undefined) continue;
      const { size, root } = checkpoint;
      world.witness.sawTree(size, Buffer.from(root).toString('hex'));
      world.trace.note(everybody, `the published checkpoint has size ${size}`);
      world.tally.count('checkpoints read');
    } catch (error) {
      if (!(error instanceof ConnectionLost)) throw error;
    }
  }
}
