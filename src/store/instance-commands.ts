/** Commands of the instances that serve a database together. On SQLite there is one at a time. */
export interface InstanceCommands {
  /** Enters this instance, or changes its facts. Returns the others that serve. */
  JoinInstances(command: { readonly facts: InstanceFacts }): readonly Instance[];
  /** Lists the instances that serve, and those of the last hour that crashed or lost the database; the oldest first. */
  ListInstances(): readonly Instance[];
  /**
   * Adds what this instance has allowed in the period that started `periodMs` ago, with each caller once. Returns what all instances
   * have allowed these callers; nothing on SQLite. A crash of the database may lose the sums.
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

/** What an instance reports about itself. */
export interface InstanceFacts {
  readonly host: string;
  readonly processId: number;
  /** The version of Artseal. */
  readonly version: string;
  /** When it started, Unix seconds. */
  readonly sinceS: number;
  /** The name of the payment provider. */
  readonly provider: string;
  /** The name of the evidence log that its settings have. */
  readonly origin?: string | undefined;
  /** The business time zone. */
  readonly timeZone: string;
  /** Name and fingerprint of each of its master keys. The first one encrypts. */
  readonly masterKeys: readonly string[];
}

/** An instance that serves a database, or did so. */
export interface Instance {
  readonly facts: InstanceFacts;
  /** How long ago it last reported, in milliseconds. It does so once a second. */
  readonly unseenMs: number;
  /** Whether it is gone: it has no session with the database, or has not reported for `goneAfterS`. */
  readonly isGone: boolean;
  readonly isLeading: boolean;
  /** Whether it is this one. */
  readonly isOwn: boolean;
}

/** An instance that has not reported for so many seconds is gone. */
export const goneAfterS = 10;
