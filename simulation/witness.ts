import type { EscrowState } from '../src/domain/escrow.ts';
import { type Attempt, checkAdmissions, type SignedCall } from './admissions.ts';
import type { Books } from './books.ts';
import type { Answer } from './listener.ts';
import { must } from './violation.ts';

/** Records what clients, the log and the provider showed, and checks later that it is still true. */
export type Witness = ReturnType<typeof createWitness>;

/** An instruction that is sent. Both times are in Unix milliseconds. */
interface Sending {
  readonly instructionId: string;
  readonly escrowId: string;
  readonly nowMs: number;
  readonly untilMs: number;
}

/** Creates an empty witness. */
export function createWitness() {
  const states = new Map<string, Set<EscrowState>>();
  const shown = new Map<string, readonly string[]>();
  const alerts = new Map<string, number>();
  const reviewed = new Set<string>();
  const names = new Map<string, Set<string>>();
  const closings = new Set<string>();
  const orderOf = new Map<string, string>();
  const attempts = new Map<string, Attempt>();
  const trees = new Map<number, string>();
  const senders = new Map<string, { readonly instance: string; readonly untilMs: number }>();

  function checkOne(escrowId: string, history: readonly string[] = []): void {
    for (const state of states.get(escrowId) ?? []) {
      must(history.includes(state), escrowId, `a client saw ${state}; the history is ${history}`);
    }
    const seen = shown.get(escrowId) ?? [];
    must(isStartOf(seen, history), escrowId, `a client was shown ${seen}; the history is ${history}`);
  }

  return {
    /** A response had the state of an order. */
    saw: (escrowId: string, state: EscrowState) => {
      states.set(escrowId, (states.get(escrowId) ?? new Set()).add(state));
    },
    /** A response had the history of an order. */
    shown: (escrowId: string, history: readonly string[]) => {
      const seen = shown.get(escrowId) ?? [];
      const [shorter, longer] = seen.length < history.length ? [seen, history] : [history, seen];
      must(isStartOf(shorter, longer), escrowId, `clients were shown ${seen} and ${history}`);
      shown.set(escrowId, longer);
    },
    /** The service logged that an order needs review. */
    alerted: (escrowId: string) => {
      alerts.set(escrowId, (alerts.get(escrowId) ?? 0) + 1);
    },
    /** Returns how often the service logged it. */
    alertsOf: (escrowId: string) => alerts.get(escrowId) ?? 0,
    /** An operator read the order in review, with or without an alert. */
    reviewed: (escrowId: string) => void reviewed.add(escrowId),
    /** Returns whether an operator read the order in review. */
    wasReviewed: (escrowId: string) => reviewed.has(escrowId),
    /** The provider got an instruction for a hold with these parties. */
    named: (holdId: string, parties: string) => {
      names.set(holdId, (names.get(holdId) ?? new Set()).add(parties));
    },
    /** Returns all parties that the provider got for a hold. */
    namesOf: (holdId: string) => names.get(holdId) ?? new Set(),
    /**
     * An instance sends an instruction, and waits for the response until a time of the wall clock. Throws a Violation if another one
     * waits for it, unless an operator decided about the order.
     */
    sends: (instance: string, { instructionId, escrowId, nowMs, untilMs }: Sending) => {
      const other = senders.get(instructionId) ?? { instance, untilMs: 0 };
      const isSecond = other.instance !== instance && nowMs < other.untilMs && !reviewed.has(escrowId);
      must(
        !isSecond,
        escrowId,
        `${instance} sends ${instructionId}, and ${other.instance} waits for its response`,
      );
      senders.set(instructionId, { instance, untilMs });
    },
    /** An instance waits no more. */
    responded: (instance: string, instructionId: string) => {
      if (senders.get(instructionId)?.instance === instance) senders.delete(instructionId);
    },
    /** An operator closes an order without asking the provider. The store may reject it. */
    closing: (escrowId: string) => {
      closings.add(escrowId);
    },
    mayBeClosed: (escrowId: string) => closings.has(escrowId),
    /** A response under an idempotency key named an order. */
    keyed: (key: string, escrowId: string) => {
      const previous = orderOf.get(key) ?? escrowId;
      must(previous === escrowId, escrowId, `the idempotency key ${key} named ${previous} before`);
      orderOf.set(key, escrowId);
    },
    /** A platform sends a signed call. */
    sent: (call: SignedCall) => {
      attempts.set(call.nonce, { ...call, answer: undefined });
    },
    /** The call with that nonce was answered. */
    answered: (nonce: string, answer: Answer) => {
      const attempt = attempts.get(nonce);
      if (attempt !== undefined) attempts.set(nonce, { ...attempt, answer });
    },
    /** A checkpoint had this tree size and this root, in hex. */
    sawTree: (size: number, root: string) => {
      const known = trees.get(size) ?? root;
      must(known === root, 'world', `two checkpoints of ${size} leaves had different roots`);
      trees.set(size, root);
    },
    /** Returns the root for each tree size of a checkpoint. */
    trees: () => trees,
    /** Throws a Violation if the records contradict a response. */
    check: (books: Books) => {
      const histories = new Map(books.orders.map(({ escrowId, entries }) => [escrowId, entries]));
      checkAdmissions(books, attempts);
      for (const escrowId of new Set([...states.keys(), ...shown.keys()])) {
        checkOne(escrowId, histories.get(escrowId));
      }
    },
  };
}

function isStartOf(start: readonly string[], whole: readonly string[]): boolean {
  return start.every((state, index) => whole[index] === state);
}
