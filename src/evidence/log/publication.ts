/** A signed tree head of the evidence log, as published. */
export interface PublishedCheckpoint {
  /** The name of the log. */
  readonly origin: string;
  /** How many leaves the tree has. */
  readonly size: number;
  /** Its root, 32 bytes. */
  readonly root: Uint8Array;
  /** The signed note (C2SP tlog-checkpoint): text, blank line, signatures and cosignatures. */
  readonly note: string;
}

/** What is published of the evidence log. Nothing beyond the newest checkpoint is told to anybody. */
export interface Publication {
  /** The newest checkpoint; undefined as long as there is none. */
  current(): PublishedCheckpoint | undefined;
  /** Resolves to the first checkpoint that covers a leaf; to undefined if there is none after so many milliseconds. */
  covering(leafIndex: number, withinMs: number): Promise<PublishedCheckpoint | undefined>;
  /** The verifier keys that sign now, in the format of signed notes, the newest first. */
  verifierKeys(): readonly string[];
}
