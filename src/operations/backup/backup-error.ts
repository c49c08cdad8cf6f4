/** A backup cannot be taken, trusted or restored; the message is for the operator. */
export class BackupError extends Error {
  override name = 'BackupError';
}

/** Is told how far a step is, in bytes. What it throws ends the work. */
export type Progress = (step: string, done: number, total: number) => void;
