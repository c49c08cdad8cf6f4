import type { Command, Kind, Result } from '../store.ts';

/** How an engine carries one command out, inside the transaction of its batch. */
export interface Handler<K extends Kind> {
  /**
   * - READ: it changes nothing.
   * - WRITE: it may change something before it throws.
   * - SINGLE_WRITE: it changes something by its last statement alone, which leaves nothing if it fails; so it needs no
   *   savepoint. Leaves of the evidence log that effects before it appended may not be in the tables, so it asks the
   *   EvidenceLog for what it has to know of them; an act among them can only be that the log was begun.
   */
  readonly access: 'READ' | 'WRITE' | 'SINGLE_WRITE';
  /** Throws ApiError. */
  run(command: Command<K>): Result<K>;
}

/** A handler for each of these commands. */
export type Handlers<Kinds extends Kind = Kind> = { readonly [K in Kinds]: Handler<K> };

/** A handler that changes nothing. */
export const reads = <K extends Kind>(run: Handler<K>['run']): Handler<K> => ({ access: 'READ', run });

/** A handler that changes something. */
export const writes = <K extends Kind>(run: Handler<K>['run']): Handler<K> => ({ access: 'WRITE', run });

/** A handler that changes something by its last statement alone. */
export const writesAtOnce = <K extends Kind>(run: Handler<K>['run']): Handler<K> => ({
  access: 'SINGLE_WRITE',
  run,
});
