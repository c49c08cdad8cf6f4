import { randomUUIDv7 } from 'node:crypto';
import { createCalendar } from '../domain/calendar.ts';
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
    'Under way: PREPARED is written down, SENT is being given, UNKNOWN was not answered and will be asked about.',
  ],
  run: async (words, terminal) => {
    const selection = { state: stateOf(words), needsReview: words.has('review') };
    return withRegistry(terminal, async ({ execute }) => {
      for await (const found of allOf((page) => execute({ kind: 'ListCases', selection, page }))) {
        show(found, words, terminal);
      }
    });
  },
};

const resolve: Action = {
  usage: `escrow resolve ESCROW_ID ${decisionFlags.join('|')} --reason TEXT [--json]`,
  details: [
    'An order waits where the institution holds another amount or currency, or says what cannot be.',
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
      const at = { atMs: nowMs, timestamp: createCalendar(timeZone).timestamp(nowMs) };
      const instructionId = randomUUIDv7();
      const found =
        decision === undefined
          ? await execute({ kind: 'CloseOrder', by, escrowId, at })
          : await execute({ kind: 'Decide', by, escrowId, decision, instructionId, nowMs });
      show(found, words, terminal);
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

function shown({ order, review, reference, open }: EscrowCase) {
  const { escrowId, state, amount, filingNo, buyerId, sellerId, caller, timestamp } = order;
  const underWay = open.map(({ kind, status }) => `${kind} ${status}`);
  const terms = { amount: Number(amount), filingNo, buyerId, sellerId, caller, timestamp };
  return { escrowId, state, ...terms, reference, underWay, review };
}

function show(found: EscrowCase, words: Words, { print }: Terminal): void {
  print(words.has('json') ? JSON.stringify(shown(found)) : line(found));
}

function line(found: EscrowCase): string {
  const { escrowId, state, amount, filingNo, caller, timestamp, reference, underWay, review } = shown(found);
  const noted =
    review === undefined ? [] : [review, `at the institution: ${reference ?? `search for ${escrowId}`}`];
  const notes = [...underWay, ...noted].join('; ');
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
