/** Commands of the processes that serve a database together. An engine that one process uses at a time has no others. */
export interface InstanceCommands {
  /** Enters this process, or changes what it says of itself. Returns the others that serve. */
  JoinInstances(command: { readonly facts: InstanceFacts }): readonly Instance[];
  /** The processes that serve, or did so in the last hour and did not stop in order; the oldest first. */
  ListInstances(): readonly Instance[];
  /**
   * Adds what an instance has allowed in the period that started `periodMs` ago, each caller once, and returns what all have allowed
   * these callers. Returns nothing on an engine that one process uses at a time. May be lost in a crash of the database.
   */
  MergeRates(command: {
    readonly periodMs: number;
    readonly used: readonly UsedRate[];
  }): readonly MergedRate[];
}

/** What an instance has allowed a caller. */
export interface UsedRate {
  readonly callerId: number;
  /** The allowed calls times the interval of the caller's rate, in milliseconds. */
  readonly usedMs: number;
}

/** What all instances together have allowed a caller. */
export interface MergedRate {
  readonly callerId: number;
  /** How long after the start of the reported period the caller's full burst is available again, in milliseconds. */
  readonly arrivalMs: number;
}

/** What a process says of itself. */
export interface InstanceFacts {
  readonly host: string;
  readonly processId: number;
  /** The version of Artseal. */
  readonly version: string;
  /** When it started, Unix seconds. */
  readonly sinceS: number;
  /** The name of the payment provider. */
  readonly provider: string;
  /** The name of the evidence log, as set. */
  readonly origin?: string | undefined;
  /** Of the business calendar. */
  readonly timeZone: string;
  /** The names of the master keys that it has. The first one encrypts. */
  readonly masterKeys: readonly string[];
}

/** A process that serves a database, or did so. */
export interface Instance {
  readonly facts: InstanceFacts;
  /** How long ago it was there last, in milliseconds. */
  readonly unseenMs: number;
  /** Whether it is gone: it has no session with the database, or was not there for ten seconds. */
  readonly isGone: boolean;
  readonly isLeading: boolean;
  /** Whether it is this process. */
  readonly isOwn: boolean;
}

/** An instance that was not there for so many seconds is gone. */
export const goneAfterS = 10;
