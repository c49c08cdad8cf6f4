import type { Command, Kind, Result } from '../store.ts';

/** Executes one command, inside the transaction of its batch. */
interface Handler<K extends Kind> {
  /** Whether it may change something. */
  readonly isWriting: boolean;
  /**
   * Whether it may fail after it has changed something. If not, only its last statement changes something. Earlier leaves of the
   * batch may not be in the tables then: it finds them in the EvidenceLog, and the only log event among them is LOG_BEGUN.
   */
  readonly needsSavepoint: boolean;
  /** Throws ApiError. */
  run(command: Command<K>): Result<K> | Promise<Result<K>>;
}

/** A handler for each of these commands. */
export type Handlers<Kinds extends Kind = Kind> = { readonly [K in Kinds]: Handler<K> };

/** A handler that changes nothing. */
export const reads = <K extends Kind>(run: Handler<K>['run']): Handler<K> => ({
  isWriting: false,
  needsSavepoint: false,
  run,
});

/** A handler that changes something. */
export const writes = <K extends Kind>(run: Handler<K>['run']): Handler<K> => ({
  isWriting: true,
  needsSavepoint: true,
  run,
});

/** A handler that changes something only in its last statement. */
export const writesLast = <K extends Kind>(run: Handler<K>['run']): Handler<K> => ({
  isWriting: true,
  needsSavepoint: false,
  run,
});
