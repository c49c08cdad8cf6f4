import type { EscrowState } from '../src/domain/escrow.ts';
import { type Attempt, checkAdmissions, type SignedCall } from './admissions.ts';
import type { Books } from './books.ts';
import type { Answer } from './listener.ts';
import { must } from './violation.ts';

/** What clients were told, which must hold for ever. */
export interface Witness {
  /** An answer said that an order is in a state. */
  told(escrowId: string, state: EscrowState): void;
  /** An answer showed the history of an order. */
  shown(escrowId: string, history: readonly string[]): void;
  /** The log said that an order needs a person. */
  alarmed(escrowId: string): void;
  /** How often it did. */
  alarmsOf(escrowId: string): number;
  /** A person found the order waiting, whatever the log said. */
  found(escrowId: string): void;
  /** Whether one did. */
  wasFound(escrowId: string): boolean;
  /** The provider was told of an order, by its hold, with parties by these names. */
  named(holdId: string, names: string): void;
  /** All names that it was told of an order. */
  namesOf(holdId: string): ReadonlySet<string>;
  /** A person ends an order without the provider, if the store takes it. */
  closing(escrowId: string): void;
  mayBeClosed(escrowId: string): boolean;
  /** An answer under an idempotency key named an order. */
  keyed(key: string, escrowId: string): void;
  /** A platform sends a signed call. */
  sent(call: SignedCall): void;
  /** The call with that nonce was answered. */
  answered(nonce: string, answer: Answer): void;
  /** Somebody was shown the tree of the evidence log: its size, and its root in hex. */
  sawTree(size: number, root: string): void;
  /** The roots that were shown, by their sizes. */
  trees(): ReadonlyMap<number, string>;
  /** Throws a Violation if the books are not as clients were told. */
  check(books: Books): void;
}

/** Starts with nothing told. */
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
      must(history.includes(state), escrowId, `a client was told ${state}; the history is ${history}`);
    }
    const seen = shown.get(escrowId) ?? [];
    must(isStartOf(seen, history), escrowId, `a client was shown ${seen}; the history is ${history}`);
  }

  return {
    told: (escrowId, state) => {
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
    named: (holdId, told) => {
      names.set(holdId, (names.get(holdId) ?? new Set()).add(told));
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
      const histories = new Map(books.orders.map(({ escrowId, told }) => [escrowId, told]));
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
