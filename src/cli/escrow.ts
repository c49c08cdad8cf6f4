import { randomUUIDv7 } from 'node:crypto';
import { type Decision, type EscrowState, escrowStates } from '../domain/escrow.ts';
import { allOf, type EscrowCase, type PageQuery } from '../store/store.ts';
import { readWords, type Words } from './arguments.ts';
import { type Actions, type Command, runAction, type Terminal, UsageError } from './command.ts';
import { withRegistry } from './registry.ts';

/** The flag for each decision about an order that waits for one. */
const decisions = {
  'look-again': 'LOOK_AGAIN',
  accept: 'ACCEPT',
  return: 'RETURN',
} as const satisfies Record<string, Decision>;

/** What `artseal escrow` can do. */
const actions: Actions = new Map(
  Object.entries<(words: string[], terminal: Terminal) => Promise<void>>({
    list: async (words, terminal) => {
      const read = readWords(words, 0, {
        attention: { type: 'boolean' },
        state: { type: 'string' },
        json: { type: 'boolean' },
      });
      const state = stateOf(read);
      await withRegistry(terminal, async ({ store: { escrows } }) => {
        const selection = { state, isInNeed: read.has('attention') };
        for await (const found of allOf((page: PageQuery) => escrows.listCases(selection, page))) {
          terminal.print(read.has('json') ? JSON.stringify(shown(found)) : line(found));
        }
      });
    },
    resolve: async (words, terminal) => {
      const flags = Object.keys(decisions).map((flag) => [flag, { type: 'boolean' }] as const);
      const read = readWords(words, 1, { ...Object.fromEntries(flags), json: { type: 'boolean' } });
      const decision = decisionOf(read);
      const [escrowId = ''] = read.positionals;
      await withRegistry(terminal, async ({ store }) => {
        const found = await store.escrows.decide(escrowId, decision, randomUUIDv7(), Date.now());
        await store.durable();
        terminal.print(read.has('json') ? JSON.stringify(shown(found)) : line(found));
      });
    },
  }),
);

/** `artseal escrow` */
export const escrow: Command = {
  usage: 'escrow list|resolve',
  summary: 'see the escrow orders, and decide about those that wait for a person',
  details: [
    'escrow list [--attention] [--state STATE] [--json]',
    '    newest first; --attention shows those alone that wait for a person, and why.',
    '    Under way: PREPARED is written down, SENT is being given, UNKNOWN was not answered and will be asked about.',
    'escrow resolve ESCROW_ID --look-again|--accept|--return [--json]',
    '    An order waits where the institution holds another amount or currency, or says what cannot be.',
    '    --look-again  asks the institution again, after the difference was put right there.',
    '    --accept      takes the word of the institution as it is.',
    '    --return      has the institution give back what it holds, instead of a release that did not arrive, too.',
    'A running server carries the decision out at once, a stopped one when it starts.',
  ],
  run: (words, terminal) => runAction(actions, words, terminal),
};

function stateOf(read: Words): EscrowState | undefined {
  const word = read.text('state');
  const state = escrowStates.find((known) => known === word);
  if (word !== undefined && state === undefined) {
    throw new UsageError(`takes --state ${escrowStates.join('|')}, not '${word}'`);
  }
  return state;
}

function decisionOf(read: Words): Decision {
  const [chosen, ...more] = Object.entries(decisions).filter(([flag]) => read.has(flag));
  if (chosen === undefined || more.length > 0) {
    const flags = Object.keys(decisions).map((flag) => `--${flag}`);
    throw new UsageError(`needs one of ${flags.join(', ')}`);
  }
  return chosen[1];
}

function shown({ order, attention, reference, open }: EscrowCase) {
  const { escrowId, state, amount, filingNo, buyerId, sellerId, caller, timestamp } = order;
  const underWay = open.map(({ kind, status }) => `${kind} ${status}`);
  const terms = { amount: Number(amount), filingNo, buyerId, sellerId, caller, timestamp };
  return { escrowId, state, ...terms, reference, underWay, attention };
}

function line(found: EscrowCase): string {
  const { escrowId, state, amount, filingNo, caller, timestamp, underWay, attention } = shown(found);
  const notes = [...underWay, ...(attention === undefined ? [] : [attention])].join('; ');
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
