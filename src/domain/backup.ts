/** How far a long piece of work is, in bytes. `total` is 0 if its step has no count. */
export interface WorkProgress {
  readonly step: string;
  readonly done: number;
  readonly total: number;
}

/**
 * Runs `artseal backup` with these words on the data folder of a server. Yields its progress and at last its result. Throws
 * BACKUP_FAILED.
 */
export type RunBackup = <Result extends object>(
  words: readonly string[],
  signal: AbortSignal,
) => AsyncIterable<BackupOutput<Result>>;

/** What `artseal backup` prints with `--json --progress`. */
export type BackupOutput<Result> = { readonly progress: WorkProgress } | Result;

/** Finds the paths that callers name for backups: `isLocal` for a user of the machine. They throw VALIDATION_FAILED. */
export interface BackupPlaces {
  /** The path of a new file. */
  newFile(file: string, isLocal: boolean): Promise<string>;
  /** The path of a file to read. */
  existingFile(file: string, isLocal: boolean): Promise<string>;
  /** The path of a folder to rotate in. */
  folder(into: string, isLocal: boolean): Promise<string>;
}

/** What a backup contains, as commands show it. */
export interface BackupFacts {
  readonly file: string;
  readonly environment: string;
  readonly currency: string;
  /** RFC 3339, milliseconds, UTC. */
  readonly takenAt: string;
  /** Version and commit of the program that took it. */
  readonly artseal: string;
  readonly schema: number;
  readonly filings: number;
  /** Undefined without filings. */
  readonly lastFilingNo: string | undefined;
  readonly orders: number;
  /** The numbers that restores skipped. */
  readonly numberGaps: readonly SkippedNumbers[];
  /** Names of the master keys that its secrets are sealed under. */
  readonly masterKeys: readonly string[];
  readonly holdsMasterKeys: boolean;
}

/** Numbers that a restore skipped. */
export interface SkippedNumbers {
  readonly kind: 'FILING' | 'ESCROW';
  readonly year: number;
  /** The number before the first skipped one. */
  readonly after: number;
  /** The last skipped one. */
  readonly through: number;
  /** RFC 3339, whole seconds, UTC. */
  readonly restoredAt: string;
}

/** The result of a rotation. */
export interface Rotated {
  /** The last backup. */
  readonly file: string;
  /** RFC 3339 in UTC. */
  readonly takenAt: string;
  /** Whether this rotation took it. */
  readonly isNew: boolean;
  readonly removed: readonly string[];
  /** Files with the name of a backup that are incomplete. They are left for a person to look at. */
  readonly broken: readonly string[];
}

/** The result of a verification. */
export interface BackupVerdict {
  readonly backup: BackupFacts;
  /** One line a fault; empty if the backup is sound. */
  readonly faults: readonly string[];
}
