import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { pipeline } from 'node:stream/promises';
import { Escrow_State } from '../../gen/artseal/v1/escrow_pb.ts';
import {
  DecideOrderRequest_Decision as Decisions,
  Order_OpenInstruction_Kind as Kinds,
  type Order,
  ReviewService,
  Order_OpenInstruction_Status as Statuses,
} from '../../gen/artseal/v1/review_pb.ts';
import { oneOf } from '../config/settings.ts';
import { escrowStates, isByOperator } from '../domain/escrow.ts';
import { orderEnds } from '../domain/resolution.ts';
import { type Action, type CommandGroup, readFlag, readRequired, UsageError, type Words } from './command.ts';
import { type CallSession, calls, present, wordIn } from './session.ts';

/** The flags of the decisions. END is a call of its own. */
const decisions = {
  'look-again': 'LOOK_AGAIN',
  accept: 'ACCEPT',
  return: 'RETURN',
  stop: 'STOP',
  close: 'CLOSE',
  end: 'END',
} as const satisfies Record<string, keyof typeof Decisions | 'END'>;

const flags = Object.keys(decisions).map((flag) => `--${flag}`);
const flagList = flags.join(', ');

const list: Action = {
  usage: 'escrow list [--review] [--state STATE] [--json]',
  details: [
    'Lists orders, the newest first. --review lists those that wait for a person, and why. For a FROZEN order it shows when the',
    'hold lapses, and until when the buyer can act.',
    'Instructions: PREPARED is stored, SENT is being sent, UNKNOWN got no response and will be looked up.',
  ],
  ...calls(({ words, client, showAll }) => {
    const state = readFlag(words, 'state', oneOf(escrowStates)) ?? 'STATE_UNSPECIFIED';
    const selection = { state: Escrow_State[state], needsReview: words.has('review') };
    return showAll('orders', (page) => client(ReviewService).listOrders({ ...selection, ...page }), show);
  }),
};

const resolve: Action = {
  usage: `escrow resolve ESCROW_ID ${flags.slice(0, -1).join('|')} [--end STATE] [--evidence FILE] --reason TEXT [--json]`,
  details: [
    'An order waits for a person if the provider holds another amount or currency, reports an impossible status, declines to',
    'return money, or has not responded for days. It also waits if money went back after the release.',
    '--look-again  asks the provider again, after you corrected the difference there.',
    '--accept      accepts the status of the provider as it is.',
    '--return      makes the provider return what it holds, which can replace a release that did not arrive.',
    'An order waits five days for the provider. To end that earlier:',
    '--stop        stops asking the provider: the order then waits for a person.',
    '--close       closes an UNPAID order at once; a hold that arrives later goes back to the buyer.',
    'If the provider will never respond again, for example because the account was closed:',
    `--end STATE   ends an order as ${orderEnds.join(', ')}. The provider gets no further instruction, and the history of the`,
    '              order marks the state as decided by an operator. For an ended order that waits for a person, give its state.',
    '--evidence    is the file that proves this end. The server stores its SHA-256, not the file.',
    '--reason      is stored with the decision: artseal audit-log shows both.',
  ],
  ...calls(async (session) => {
    const { words, client, reason } = session;
    const decision = decisionOf(words);
    const request = { escrowId: words.required('ESCROW_ID'), reason };
    const { order } =
      decision === 'END'
        ? await client(ReviewService).endOrder({ ...request, ...(await proofOf(words)) })
        : await client(ReviewService).decideOrder({ ...request, decision: Decisions[decision] });
    show(present(order), session);
  }),
};

/** `artseal escrow` */
export const escrow: CommandGroup = {
  summary: 'list escrow orders, and decide about those that wait for a person',
  actions: [list, resolve],
  details: ['A running server carries out a decision at once, a stopped one when it starts.'],
};

function decisionOf(words: Words) {
  const [chosen, ...more] = Object.entries(decisions).filter(([flag]) => words.has(flag));
  if (chosen === undefined) throw new UsageError(`needs one of ${flagList}`);
  if (more.length > 0) throw new UsageError(`takes only one of ${flagList}`);
  const [, decision] = chosen;
  if (decision !== 'END' && words.has('evidence'))
    throw new UsageError('takes --evidence FILE only with --end');
  return decision;
}

/** Reads how the order ends, and what proves it. Throws UsageError, and an Error for an unreadable file. */
async function proofOf(words: Words) {
  const [end, file] = [readRequired(words, 'end', oneOf(orderEnds)), words.text('evidence')];
  if (file === undefined) throw new UsageError('needs --evidence FILE with --end');
  const digest = createHash('sha256');
  await pipeline(createReadStream(file), digest);
  return { end: Escrow_State[end], evidence: digest.digest('hex') };
}

function shown({ escrow, review, reference, underWay }: Order) {
  const order = present(escrow);
  const { escrowId, amount, filingNo, buyerId, sellerId, caller, timestamp, holdExpiresAt } = order;
  return {
    escrowId,
    state: wordIn(Escrow_State, order.state),
    byOperator: isByOperator(order.history) || undefined,
    ...{ amount: Number(amount), filingNo, buyerId, sellerId, caller, timestamp, reference },
    underWay: underWay.map(({ kind, status }) => `${wordIn(Kinds, kind)} ${wordIn(Statuses, status)}`),
    holdExpiresAt,
    buyerActsUntil: order.nextAction?.expiresAt,
    review,
  };
}

function show(found: Order, session: CallSession): void {
  const order = shown(found);
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
