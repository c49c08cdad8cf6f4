import type { Actor } from '../domain/audit-entry.ts';

/** Keys that may sign at a time. Clients may reject notes with more than 16 signatures, and witnesses add theirs. */
export const logKeysMax = 4;

/** The names, keys and checkpoints of the published evidence log. */
export interface LogCommands {
  GetLog(): LogState;
  /** Names an unnamed log and adds its first key, with a leaf KEY_ADDED. Does nothing if it has a name. */
  NameLog(command: { readonly origin: string; readonly key: NewLogKey }): undefined;
  /**
   * Adds a key, with a leaf KEY_ADDED. The other keys end at `endsAtS` or sooner. The new one signs from `signsFromS`, which is
   * in the leaf, or at once. Returns its verifier key and `endsAtS`. Fails with VALIDATION_FAILED if `logKeysMax` others are still
   * signing then.
   */
  RotateLogKey(command: {
    readonly by: Actor;
    readonly key: NewLogKey;
    readonly endsAtS: number;
    readonly signsFromS?: number | undefined;
  }): { readonly vkey: string; readonly endsAtS: number };
  /**
   * Continues the log under a new name with a new key. Ends all other keys and deletes the kept checkpoints. The first leaf,
   * LOG_FORKED, has the last checkpoint under the old name, empty if none is known.
   */
  ForkLog(command: {
    readonly by: Actor;
    readonly origin: string;
    readonly key: NewLogKey;
    readonly previous: string;
  }): undefined;
  /** Retires a key and erases its seed, with a leaf KEY_RETIRED. Does nothing if it is retired already. */
  EndLogKey(command: { readonly vkey: string; readonly atS: number }): undefined;
  /**
   * Keeps a checkpoint and deletes all others without a time stamp. Returns false and changes nothing if it has an earlier name of the
   * log, has fewer leaves than the kept one, or has as many leaves and another note.
   */
  KeepCheckpoint(command: KeptCheckpoint): boolean;
  /** Keeps a checkpoint with its time stamp for good. */
  KeepTimeStamp(command: StampedCheckpoint): undefined;
  /** Finds the smallest time-stamped checkpoint under the current name that covers a leaf. */
  FindTimeStamp(command: { readonly leafIndex: number }): StampedCheckpoint | undefined;
}

/** The names of the evidence log. */
export interface LogNames {
  /** The current name: the first line of checkpoints and the name of keys. Undefined before the log is first served. */
  readonly origin: string | undefined;
  /** All names, the current one last. */
  readonly names: readonly LogName[];
}

/** The state of the published log. */
export interface LogState extends LogNames {
  /** All keys, newest first. */
  readonly keys: readonly LogKey[];
  /** The newest checkpoint under the current name; undefined if there is none. */
  readonly newest: KeptCheckpoint | undefined;
  /** The last checkpoint under the previous name, as given to ForkLog; undefined for the first name. */
  readonly forkedAfter: string | undefined;
  /** When the last restored backup was taken, Unix seconds; undefined if none was restored. */
  readonly restoredFromS: number | undefined;
  /** When it was restored, likewise. */
  readonly restoredAtS: number | undefined;
}

/** A name of the log. */
export interface LogName {
  /** The first line of checkpoints and the name of keys. */
  readonly origin: string;
  /** The tree size from which it is used. */
  readonly firstSize: number;
}

/** A key to add. */
export interface NewLogKey {
  /** The verifier key, in the format of signed notes. */
  readonly vkey: string;
  /** The seed of the private key, as hex digits, encrypted. */
  readonly sealedSeed: Uint8Array;
  /** Unix seconds. */
  readonly addedAtS: number;
}

/** A key of the log. */
export interface LogKey extends NewLogKey {
  /** Unix seconds from which it signs, as in its leaf; null if it signs from the start. */
  readonly signsFromS: number | null;
  /** Unix seconds from which it does not sign; null if that is not decided. */
  readonly endsAtS: number | null;
  /** Whether it is retired. Its seed is then empty. */
  readonly isRetired: boolean;
}

/** A published checkpoint. */
export interface KeptCheckpoint {
  /** Leaves of the tree. */
  readonly size: number;
  /** The signed note. */
  readonly note: string;
  /** Unix seconds. */
  readonly publishedAtS: number;
}

/** A checkpoint with a time stamp. */
export interface StampedCheckpoint extends KeptCheckpoint {
  /** RFC 3161 TimeStampToken over the text of the note, DER. */
  readonly timeStamp: Uint8Array;
}
