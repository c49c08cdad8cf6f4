import { randomUUIDv7 } from 'node:crypto';
import { type Calendar, createCalendar } from '../domain/calendar.ts';
import { type EscrowState, escrowStates } from '../domain/escrow.ts';
import type { Decision } from '../domain/resolution.ts';
import { allOf } from '../store/paging.ts';
import type { EscrowCase } from '../store/reconciliation-commands.ts';
import { localActor } from './actor.ts';
import { type Action, type CommandGroup, type Terminal, UsageError, type Words } from './command.ts';
import { withRegistry } from './registry.ts';

/** The flag for each decision about an order that waits for one. */
const decisions = {
  'look-again': 'LOOK_AGAIN',
  accept: 'ACCEPT',
  return: 'RETURN',
  stop: 'STOP',
} as const satisfies Record<string, Decision>;

/** Ends an order without the institution. */
const closes = 'close';

const decisionFlags = [...Object.keys(decisions), closes].map((flag) => `--${flag}`);

const list: Action = {
  usage: 'escrow list [--review] [--state STATE] [--json]',
  details: [
    'newest first; --review shows those alone that wait for a person, and why.',
    'Of a FROZEN order whose hold lapses, until when it is kept; of one whose buyer has to act, until when they may.',
    'Under way: PREPARED is written down, SENT is being given, UNKNOWN was not answered and will be asked about.',
  ],
  run: async (words, terminal) => {
    const selection = { state: stateOf(words), needsReview: words.has('review') };
    return withRegistry(terminal, async ({ execute }, { timeZone }) => {
      const calendar = createCalendar(timeZone);
      for await (const found of allOf((page) => execute({ kind: 'ListCases', selection, page }))) {
        show(found, words, terminal, calendar);
      }
    });
  },
};

const resolve: Action = {
  usage: `escrow resolve ESCROW_ID ${decisionFlags.join('|')} --reason TEXT [--json]`,
  details: [
    'An order waits where the institution holds another amount or currency, says what cannot be, declines to give back,',
    'has not answered for days, or where money went back after the release.',
    '--look-again  asks the institution again, after the difference was put right there.',
    '--accept      takes the word of the institution as it is.',
    '--return      has the institution give back what it holds, instead of a release that did not arrive, too.',
    'An order that waits for the institution goes on waiting for five days, unless it is ended here:',
    '--stop        asks it no more, so that the order waits for a person.',
    '--close       closes an UNPAID order at once; a hold that still comes goes back to the buyer.',
    '--reason      is kept with what was decided: artseal acts shows both.',
  ],
  run: async (words, terminal) => {
    const decision = decisionOf(words);
    return withRegistry(terminal, async ({ execute }, { timeZone }) => {
      const [by, escrowId] = [localActor(words, terminal), words.required('ESCROW_ID')];
      const nowMs = Date.now();
      const calendar = createCalendar(timeZone);
      const at = { atMs: nowMs, timestamp: calendar.timestamp(nowMs) };
      const instructionId = randomUUIDv7();
      const found =
        decision === undefined
          ? await execute({ kind: 'CloseOrder', by, escrowId, at })
          : await execute({ kind: 'Decide', by, escrowId, decision, instructionId, nowMs });
      show(found, words, terminal, calendar);
    });
  },
};

/** `artseal escrow` */
export const escrow: CommandGroup = {
  summary: 'see the escrow orders, and decide about those that wait for a person',
  actions: [list, resolve],
  details: ['A running server carries a decision out at once, a stopped one when it starts.'],
};

function stateOf(words: Words): EscrowState | undefined {
  const word = words.text('state');
  const state = escrowStates.find((known) => known === word);
  if (word !== undefined && state === undefined) {
    throw new UsageError(`takes --state ${escrowStates.join('|')}, not '${word}'`);
  }
  return state;
}

/** What a person decides; undefined to close the order. */
function decisionOf(words: Words): Decision | undefined {
  const possible = [...Object.entries(decisions), [closes, undefined] as const];
  const [chosen, ...more] = possible.filter(([flag]) => words.has(flag));
  const flags = decisionFlags.join(', ');
  if (chosen === undefined) throw new UsageError(`needs one of ${flags}`);
  if (more.length > 0) throw new UsageError(`takes only one of ${flags}`);
  return chosen[1];
}

function shown({ order, review, reference, open }: EscrowCase, calendar: Calendar) {
  const { escrowId, state, amount, filingNo, buyerId, sellerId, caller, timestamp } = order;
  const { holdExpiresAtMs, nextAction } = order;
  const underWay = open.map(({ kind, status }) => `${kind} ${status}`);
  const terms = { amount: Number(amount), filingNo, buyerId, sellerId, caller, timestamp };
  const holdExpiresAt = holdExpiresAtMs === undefined ? undefined : calendar.timestamp(holdExpiresAtMs);
  const buyerActsUntil = nextAction === undefined ? undefined : calendar.timestamp(nextAction.untilMs);
  return { escrowId, state, ...terms, reference, underWay, holdExpiresAt, buyerActsUntil, review };
}

function show(found: EscrowCase, words: Words, { print }: Terminal, calendar: Calendar): void {
  print(words.has('json') ? JSON.stringify(shown(found, calendar)) : line(found, calendar));
}

function line(found: EscrowCase, calendar: Calendar): string {
  const order = shown(found, calendar);
  const { escrowId, state, amount, filingNo, caller, timestamp, reference, review } = order;
  const times = [
    ...(order.buyerActsUntil === undefined ? [] : [`the buyer may act until ${order.buyerActsUntil}`]),
    ...(order.holdExpiresAt === undefined ? [] : [`the hold lapses at ${order.holdExpiresAt}`]),
  ];
  const noted =
    review === undefined ? [] : [review, `at the institution: ${reference ?? `search for ${escrowId}`}`];
  const notes = [...order.underWay, ...times, ...noted].join('; ');
  const columns = [
    escrowId,
    state.padEnd(8),
    timestamp,
    filingNo,
    String(amount).padStart(16),
    caller,
    notes,
  ];
  return columns.join('  ').trimEnd();
}
