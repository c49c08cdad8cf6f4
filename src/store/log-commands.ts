import type { Actor } from '../domain/audit-entry.ts';

/** How many keys may sign at a time: whoever reads a note need not take more than 16 signatures, and witnesses have theirs. */
export const logKeysMax = 4;

/** What the evidence log is published under: its names, its keys and its checkpoints. */
export interface LogCommands {
  /** All of it. */
  GetLog: { readonly takes: object; readonly gives: LogState };
  /** Names a log that has no name yet, and adds its first key: a leaf KEY_ADDED. */
  NameLog: {
    readonly takes: { readonly origin: string; readonly key: NewLogKey };
    readonly gives: undefined;
  };
  /**
   * Adds a key beside the others, which end at `endsAtS` or sooner: a leaf KEY_ADDED. It signs from `signsFromS` on, which the
   * leaf says, or from now on without. Refused with VALIDATION_FAILED if there are `logKeysMax` already that go on beside it.
   */
  RotateLogKey: {
    readonly takes: {
      readonly by: Actor;
      readonly key: NewLogKey;
      readonly endsAtS: number;
      readonly signsFromS?: number | undefined;
    };
    readonly gives: undefined;
  };
  /**
   * Ends the log under the name in force, and has it go on under another one with a key of its own: all other keys are ended,
   * kept checkpoints forgotten. The first of its leaves, LOG_FORKED, has the last checkpoint of before, empty if none is known.
   */
  ForkLog: {
    readonly takes: {
      readonly by: Actor;
      readonly origin: string;
      readonly key: NewLogKey;
      readonly previous: string;
    };
    readonly gives: undefined;
  };
  /** Has a key sign no more, and erases its seed: a leaf KEY_RETIRED. Nothing if it was done before. */
  EndLogKey: { readonly takes: { readonly vkey: string; readonly atS: number }; readonly gives: undefined };
  /** Keeps a checkpoint in the place of all others that bear no time stamp. */
  KeepCheckpoint: { readonly takes: KeptCheckpoint; readonly gives: undefined };
  /** Keeps a checkpoint for good, with the time stamp over its text. */
  KeepTimeStamp: { readonly takes: StampedCheckpoint; readonly gives: undefined };
  /** The smallest checkpoint under the name in force that covers a leaf and bears a time stamp; undefined if there is none. */
  FindTimeStamp: {
    readonly takes: { readonly leafIndex: number };
    readonly gives: StampedCheckpoint | undefined;
  };
}

/** What the evidence log is called. */
export interface LogNames {
  /** The name in force: the first line of its checkpoints, and the name of its keys. Undefined before the log is first served. */
  readonly origin: string | undefined;
  /** All names that the log had, the one in force last. */
  readonly names: readonly LogName[];
}

/** What the log is published under. */
export interface LogState extends LogNames {
  /** All keys that the log had, the newest first. */
  readonly keys: readonly LogKey[];
  /** The newest checkpoint under the name in force; undefined if there is none. */
  readonly newest: KeptCheckpoint | undefined;
  /** The checkpoint that the name in force began behind, as ForkLog was told it; undefined if it is the first one. */
  readonly forkedBehind: string | undefined;
  /** When the backup was taken that the database was restored from last, Unix seconds; undefined if it never was. */
  readonly restoredFromS: number | undefined;
}

/** A name of the log. */
export interface LogName {
  /** The first line of its checkpoints, and the name of its keys. */
  readonly origin: string;
  /** The size of the tree from which on it is published under that name. */
  readonly firstSize: number;
}

/** A key to be added. */
export interface NewLogKey {
  /** The verifier key, in the format of signed notes. */
  readonly vkey: string;
  /** The seed of the private key, as hex digits, sealed. */
  readonly sealedSeed: Uint8Array;
  /** Unix seconds. */
  readonly addedAtS: number;
}

/** A key of the log. */
export interface LogKey extends NewLogKey {
  /** Unix seconds from which on it signs, as its leaf says; null if it signs since it was added. */
  readonly signsFromS: number | null;
  /** Unix seconds as of which it is to sign no more; null if that is not decided. */
  readonly endsAtS: number | null;
  /** Whether it signs no more; its seed is empty then. */
  readonly isRetired: boolean;
}

/** A checkpoint that was published. */
export interface KeptCheckpoint {
  /** How many leaves the tree has. */
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
