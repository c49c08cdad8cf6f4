import type { EscrowState } from '../src/domain/escrow.ts';
import { type Attempt, checkAdmissions, type SignedCall } from './admissions.ts';
import type { Books } from './books.ts';
import type { Answer } from './listener.ts';
import { must } from './violation.ts';

/** What clients were shown, which must stay true. */
export interface Witness {
  /** A response had the state of an order. */
  saw(escrowId: string, state: EscrowState): void;
  /** A response had the history of an order. */
  shown(escrowId: string, history: readonly string[]): void;
  /** The log said that an order needs a person. */
  alarmed(escrowId: string): void;
  /** How often the log said it. */
  alarmsOf(escrowId: string): number;
  /** A person found the order in review, whatever the log said. */
  found(escrowId: string): void;
  /** Whether a person found it. */
  wasFound(escrowId: string): boolean;
  /** The provider got an order, by its hold, with these parties. */
  named(holdId: string, names: string): void;
  /** All parties that the provider got for an order. */
  namesOf(holdId: string): ReadonlySet<string>;
  /** A person closes an order without the provider, if the store accepts it. */
  closing(escrowId: string): void;
  mayBeClosed(escrowId: string): boolean;
  /** A response under an idempotency key named an order. */
  keyed(key: string, escrowId: string): void;
  /** A platform sends a signed call. */
  sent(call: SignedCall): void;
  /** The call with that nonce was answered. */
  answered(nonce: string, answer: Answer): void;
  /** A checkpoint showed the size of the evidence log and its root in hex. */
  sawTree(size: number, root: string): void;
  /** The roots that were shown, by their sizes. */
  trees(): ReadonlyMap<number, string>;
  /** Throws a Violation if the books differ from what clients were shown. */
  check(books: Books): void;
}

/** Nothing was shown yet. */
export function createWitness(): Witness {
  const states = new Map<string, Set<EscrowState>>();
  const shown = new Map<string, readonly string[]>();
  const alarms = new Map<string, number>();
  const found = new Set<string>();
  const names = new Map<string, Set<string>>();
  const closings = new Set<string>();
  const orderOf = new Map<string, string>();
  const attempts = new Map<string, Attempt>();
  const trees = new Map<number, string>();

  function checkOne(escrowId: string, history: readonly string[] = []): void {
    for (const state of states.get(escrowId) ?? []) {
      must(history.includes(state), escrowId, `a client saw ${state}; the history is ${history}`);
    }
    const seen = shown.get(escrowId) ?? [];
    must(isStartOf(seen, history), escrowId, `a client was shown ${seen}; the history is ${history}`);
  }

  return {
    saw: (escrowId, state) => {
      states.set(escrowId, (states.get(escrowId) ?? new Set()).add(state));
    },
    shown: (escrowId, history) => {
      const seen = shown.get(escrowId) ?? [];
      const [shorter, longer] = seen.length < history.length ? [seen, history] : [history, seen];
      must(isStartOf(shorter, longer), escrowId, `clients were shown ${seen} and ${history}`);
      shown.set(escrowId, longer);
    },
    alarmed: (escrowId) => {
      alarms.set(escrowId, (alarms.get(escrowId) ?? 0) + 1);
    },
    alarmsOf: (escrowId) => alarms.get(escrowId) ?? 0,
    found: (escrowId) => void found.add(escrowId),
    wasFound: (escrowId) => found.has(escrowId),
    named: (holdId, parties) => {
      names.set(holdId, (names.get(holdId) ?? new Set()).add(parties));
    },
    namesOf: (holdId) => names.get(holdId) ?? new Set(),
    closing: (escrowId) => {
      closings.add(escrowId);
    },
    mayBeClosed: (escrowId) => closings.has(escrowId),
    keyed: (key, escrowId) => {
      const before = orderOf.get(key) ?? escrowId;
      must(before === escrowId, escrowId, `the idempotency key ${key} named ${before} before`);
      orderOf.set(key, escrowId);
    },
    sent: (call) => {
      attempts.set(call.nonce, { ...call, answer: undefined });
    },
    answered: (nonce, answer) => {
      const attempt = attempts.get(nonce);
      if (attempt !== undefined) attempts.set(nonce, { ...attempt, answer });
    },
    sawTree: (size, root) => {
      const before = trees.get(size) ?? root;
      must(before === root, 'world', `two trees of ${size} leaves were shown`);
      trees.set(size, root);
    },
    trees: () => trees,
    check: (books) => {
      const histories = new Map(books.orders.map(({ escrowId, entries }) => [escrowId, entries]));
      checkAdmissions(books, attempts);
      for (const escrowId of new Set([...states.keys(), ...shown.keys()])) {
        checkOne(escrowId, histories.get(escrowId));
      }
    },
  };
}

function isStartOf(start: readonly string[], whole: readonly string[]): boolean {
  return start.every((state, place) => whole[place] === state);
}
