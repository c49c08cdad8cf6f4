import { createHash, randomUUIDv7 } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { pipeline } from 'node:stream/promises';
import { type Calendar, createCalendar } from '../domain/calendar.ts';
import { escrowStates, isByOperator } from '../domain/escrow.ts';
import { type Decision, type OrderEnd, orderEnds } from '../domain/resolution.ts';
import { allOf } from '../store/paging.ts';
import type { EscrowCase } from '../store/reconciliation-commands.ts';
import type { Execute } from '../store/store.ts';
import { localActor } from './actor.ts';
import { oneOf } from './arguments.ts';
import { type Action, type CommandGroup, type Terminal, UsageError, type Words } from './command.ts';
import { changeRegistry, withRegistry } from './registry.ts';

/** The flag for each decision about an order that waits for one. */
const decisions = {
  'look-again': 'LOOK_AGAIN',
  accept: 'ACCEPT',
  return: 'RETURN',
  stop: 'STOP',
} as const satisfies Record<string, Decision>;

/** Closes an order that is UNPAID, without the provider. */
const closes = 'close';
/** Ends any order as its value says, without the provider and with evidence. */
const ends = 'end';

const choices = [...Object.keys(decisions), closes];
const decisionFlags = [...choices, ends].map((flag) => `--${flag}`).join(', ');

const list: Action = {
  usage: 'escrow list [--review] [--state STATE] [--json]',
  details: [
    'newest first; --review shows those alone that wait for a person, and why.',
    'Of a FROZEN order whose hold lapses, until when it is kept; of one whose buyer has to act, until when they may.',
    'Under way: PREPARED is written down, SENT is being given, UNKNOWN was not answered and will be asked about.',
  ],
  run: async (words, terminal) => {
    const selection = { state: oneOf(words, 'state', escrowStates), needsReview: words.has('review') };
    return withRegistry(terminal, async ({ execute }, { timeZone }) => {
      const calendar = createCalendar(timeZone);
      for await (const found of allOf((page) => execute({ kind: 'ListCases', selection, page }))) {
        show(found, words, terminal, calendar);
      }
    });
  },
};

const resolve: Action = {
  usage: `escrow resolve ESCROW_ID ${choices.map((flag) => `--${flag}`).join('|')} [--end STATE] [--evidence FILE] --reason TEXT [--json]`,
  details: [
    'An order waits where the provider holds another amount or currency, says what cannot be, declines to give back,',
    'has not answered for days, or where money went back after the release.',
    '--look-again  asks the provider again, after the difference was put right there.',
    '--accept      takes the word of the provider as it is.',
    '--return      has the provider give back what it holds, instead of a release that did not arrive, too.',
    'An order that waits for the provider goes on waiting for five days, unless it is ended here:',
    '--stop        asks it no more, so that the order waits for a person.',
    '--close       closes an UNPAID order at once; a hold that still comes goes back to the buyer.',
    'Where the provider will never answer, its account being gone, say:',
    `--end STATE   ends an order as ${orderEnds.join(', ')}. Nothing of it is given to the provider any more, and its`,
    '              history marks the state as decided by an operator. An order that has ended and waits for a person keeps its',
    '              state: name that one.',
    '--evidence    is the file that proves it: its SHA-256 is kept with the decision, the file is not.',
    '--reason      is kept with what was decided: artseal audit-log shows both.',
  ],
  run: async (words, terminal) => {
    const decision = await decisionOf(words);
    return changeRegistry(terminal, async ({ execute }, { timeZone }) => {
      const [by, escrowId] = [localActor(words, terminal), words.required('ESCROW_ID')];
      const nowMs = Date.now();
      const calendar = createCalendar(timeZone);
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
      show(found, words, terminal, calendar);
    });
  },
};

/** Leaves of the evidence log that are read in one unit of the store. */
const leavesAtOnce = 1_024;

/** Has the store read the evidence log before a write needs it, which would keep a running server from writing meanwhile. */
async function readLog(execute: Execute): Promise<void> {
  let left = true;
  while (left) {
    const { verified, size } = await execute({ kind: 'VerifyLog', leaves: leavesAtOnce });
    left = verified < size;
  }
}

/** `artseal escrow` */
export const escrow: CommandGroup = {
  summary: 'see the escrow orders, and decide about those that wait for a person',
  actions: [list, resolve],
  details: ['A running server carries a decision out at once, a stopped one when it starts.'],
};

/** What a person decides. */
type Chosen =
  | { readonly kind: Decision | 'CLOSE' }
  | { readonly kind: 'END'; readonly end: OrderEnd; readonly evidence: string };

/** Reads the decision, and the evidence for it. Throws UsageError, and an Error that names a file that cannot be read. */
async function decisionOf(words: Words): Promise<Chosen> {
  const possible = [...Object.entries(decisions), [closes, 'CLOSE'], [ends, 'END']] as const;
  const [chosen, ...more] = possible.filter(([flag]) => words.has(flag));
  if (chosen === undefined) throw new UsageError(`needs one of ${decisionFlags}`);
  if (more.length > 0) throw new UsageError(`takes only one of ${decisionFlags}`);
  const [kind, evidence] = [chosen[1], words.text('evidence')];
  if (kind !== 'END') {
    if (evidence !== undefined) throw new UsageError('takes --evidence FILE with --end alone');
    return { kind };
  }
  const word = words.text(ends);
  const end = orderEnds.find((known) => known === word);
  if (end === undefined) throw new UsageError(`takes --end ${orderEnds.join('|')}, not '${word}'`);
  if (evidence === undefined) throw new UsageError('needs --evidence FILE with --end');
  return { kind, end, evidence: await digestOf(evidence) };
}

/** SHA-256 of a file. */
async function digestOf(file: string): Promise<string> {
  const digest = createHash('sha256');
  await pipeline(createReadStream(file), digest);
  return digest.digest('hex');
}

function shown({ order, review, reference, open }: EscrowCase, calendar: Calendar) {
  const { escrowId, state, amount, filingNo, buyerId, sellerId, caller, timestamp } = order;
  const { holdExpiresAtMs, nextAction } = order;
  const underWay = open.map(({ kind, status }) => `${kind} ${status}`);
  const terms = { amount: Number(amount), filingNo, buyerId, sellerId, caller, timestamp };
  const holdExpiresAt = holdExpiresAtMs === undefined ? undefined : calendar.timestamp(holdExpiresAtMs);
  const buyerActsUntil = nextAction === undefined ? undefined : calendar.timestamp(nextAction.untilMs);
  const byOperator = isByOperator(order) || undefined;
  return {
    escrowId,
    state,
    byOperator,
    ...terms,
    reference,
    underWay,
    holdExpiresAt,
    buyerActsUntil,
    review,
  };
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
    review === undefined ? [] : [review, `at the provider: ${reference ?? `search for ${escrowId}`}`];
  const decided = order.byOperator ? ['decided by an operator'] : [];
  const notes = [...order.underWay, ...times, ...decided, ...noted].join('; ');
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
