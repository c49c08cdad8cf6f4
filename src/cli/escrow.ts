import { createHash, randomUUIDv7 } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { pipeline } from 'node:stream/promises';
import { oneOf } from '../config/settings.ts';
import { escrowStates, isByOperator } from '../domain/escrow.ts';
import { type Decision, type OrderEnd, orderEnds } from '../domain/resolution.ts';
import { readLog } from '../evidence/log/verification.ts';
import type { EscrowCase } from '../store/reconciliation-commands.ts';
import { type Action, type CommandGroup, readFlag, UsageError, type Words } from './command.ts';
import { changeRegistry, type Session, withRegistry } from './session.ts';

/** The flags of the decisions. CLOSE and END do without the provider. */
const decisions = {
  'look-again': 'LOOK_AGAIN',
  accept: 'ACCEPT',
  return: 'RETURN',
  stop: 'STOP',
  close: 'CLOSE',
  end: 'END',
} as const satisfies Record<string, Decision | 'CLOSE' | 'END'>;

const flags = Object.keys(decisions).map((flag) => `--${flag}`);
const flagList = flags.join(', ');

const list: Action = {
  usage: 'escrow list [--review] [--state STATE] [--json]',
  details: [
    'Lists orders, the newest first. --review lists those that wait for a person, and why. For a FROZEN order it shows when the',
    'hold lapses, and until when the buyer can act.',
    'Instructions: PREPARED is stored, SENT is being sent, UNKNOWN got no response and will be looked up.',
  ],
  run: async (words, terminal) => {
    const selection = {
      state: readFlag(words, 'state', oneOf(escrowStates)),
      needsReview: words.has('review'),
    };
    return withRegistry(words, terminal, ({ execute, showAll }) =>
      showAll((page) => execute({ kind: 'ListCases', selection, page }), show),
    );
  },
};

const resolve: Action = {
  usage: `escrow resolve ESCROW_ID ${flags.slice(0, -1).join('|')} [--end STATE] [--evidence FILE] --reason TEXT [--json]`,
  details: [
    'An order waits for a person if the provider holds another amount or currency, reports an impossible status, declines to',
    'return money, has not responded for days, or if money went back after the release.',
    '--look-again  asks the provider again, after you corrected the difference there.',
    '--accept      accepts the status of the provider as it is.',
    '--return      makes the provider return what it holds, also in place of a release that did not arrive.',
    'An order that waits for the provider waits for five days, unless you end it here:',
    '--stop        stops asking the provider: the order then waits for a person.',
    '--close       closes an UNPAID order at once; a hold that arrives later goes back to the buyer.',
    'If the provider will never respond again, for example because the account is gone:',
    `--end STATE   ends an order as ${orderEnds.join(', ')}. The provider gets no further instruction, and the history of the`,
    '              order marks the state as decided by an operator. For an ended order that waits for a person, name its state.',
    '--evidence    is the file that proves it. The server stores its SHA-256, not the file.',
    '--reason      is stored with the decision: artseal audit-log shows both.',
  ],
  run: async (words, terminal) => {
    const decision = await decisionOf(words);
    return changeRegistry(words, terminal, async (session) => {
      const { execute, calendar, actor } = session;
      const [by, escrowId] = [actor(), words.required('ESCROW_ID')];
      const nowMs = Date.now();
      const at = { atMs: nowMs, timestamp: calendar.timestamp(nowMs) };
      const instructionId = randomUUIDv7();
      const { kind } = decision;
      if (kind === 'END') await readLog(execute);
      const found =
        kind === 'CLOSE'
          ? await execute({ kind: 'CloseOrder', by, escrowId, at })
          : kind === 'END'
            ? await execute({ ...decision, kind: 'EndOrder', by, escrowId, at })
            : await execute({ kind: 'Decide', by, escrowId, decision: kind, instructionId, nowMs });
      show(found, session);
    });
  },
};

/** `artseal escrow` */
export const escrow: CommandGroup = {
  summary: 'list escrow orders, and decide about those that wait for a person',
  actions: [list, resolve],
  details: ['A running server carries out a decision at once, a stopped one when it starts.'],
};

/** What a person decides. */
type Chosen =
  | { readonly kind: Decision | 'CLOSE' }
  | { readonly kind: 'END'; readonly end: OrderEnd; readonly evidence: string };

/** Reads the decision and its evidence. Throws UsageError, and an Error for an unreadable file. */
async function decisionOf(words: Words): Promise<Chosen> {
  const [chosen, ...more] = Object.entries(decisions).filter(([flag]) => words.has(flag));
  if (chosen === undefined) throw new UsageError(`needs one of ${flagList}`);
  if (more.length > 0) throw new UsageError(`takes only one of ${flagList}`);
  const [kind, evidence] = [chosen[1], words.text('evidence')];
  if (kind !== 'END') {
    if (evidence !== undefined) throw new UsageError('takes --evidence FILE only with --end');
    return { kind };
  }
  const end = readFlag(words, 'end', oneOf(orderEnds));
  if (end === undefined || evidence === undefined) throw new UsageError('needs --evidence FILE with --end');
  const digest = createHash('sha256');
  await pipeline(createReadStream(evidence), digest);
  return { kind, end, evidence: digest.digest('hex') };
}

function shown({ order, review, reference, open }: EscrowCase, { calendar }: Session) {
  const { escrowId, state, amount, filingNo, buyerId, sellerId, caller, timestamp } = order;
  const { holdExpiresAtMs, nextAction } = order;
  const at = (atMs: number | undefined) => (atMs === undefined ? undefined : calendar.timestamp(atMs));
  return {
    escrowId,
    state,
    byOperator: isByOperator(order) || undefined,
    ...{ amount: Number(amount), filingNo, buyerId, sellerId, caller, timestamp, reference },
    underWay: open.map(({ kind, status }) => `${kind} ${status}`),
    holdExpiresAt: at(holdExpiresAtMs),
    buyerActsUntil: at(nextAction?.untilMs),
    review,
  };
}

function show(found: EscrowCase, session: Session): void {
  const order = shown(found, session);
  const { escrowId, state, amount, filingNo, caller, timestamp, reference, review } = order;
  const notes = [...order.underWay];
  if (order.buyerActsUntil !== undefined) notes.push(`the buyer can act until ${order.buyerActsUntil}`);
  if (order.holdExpiresAt !== undefined) notes.push(`the hold lapses at ${order.holdExpiresAt}`);
  if (order.byOperator) notes.push('decided by an operator');
  if (review !== undefined) notes.push(review, `at the provider: ${reference ?? `search for ${escrowId}`}`);
  const columns = [
    escrowId,
    state.padEnd(8),
    timestamp,
    filingNo,
    String(amount).padStart(16),
    caller,
    notes.join('; '),
  ];
  session.show(order, columns.join('  ').trimEnd());
}
