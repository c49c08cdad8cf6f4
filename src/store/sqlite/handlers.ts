import type { Command, Kind, Result } from '../store.ts';

/** How an engine carries one command out, inside the transaction of its batch. */
export interface Handler<K extends Kind> {
  /**
   * - READ: it changes nothing.
   * - WRITE: it may change something before it throws.
   * - CHECKED_WRITE: a Refusal comes before its first change, so that it needs no savepoint of its own.
   */
  readonly access: 'READ' | 'WRITE' | 'CHECKED_WRITE';
  /** Throws Refusal. */
  run(command: Command<K>): Result<K>;
}

/** A handler for each of these commands. */
export type Handlers<Kinds extends Kind = Kind> = { readonly [K in Kinds]: Handler<K> };

/** A handler that changes nothing. */
export const reads = <K extends Kind>(run: Handler<K>['run']): Handler<K> => ({ access: 'READ', run });

/** A handler that changes something. */
export const writes = <K extends Kind>(run: Handler<K>['run']): Handler<K> => ({ access: 'WRITE', run });

/** A handler that refuses, if it does, before it changes anything. */
export const checksAndWrites = <K extends Kind>(run: Handler<K>['run']): Handler<K> => ({
  access: 'CHECKED_WRITE',
  run,
});
