/** A backup cannot be taken, trusted or restored; the message is for the operator. */
export class BackupError extends Error {
  override name = 'BackupError';
}

/** Receives the progress of a step, in bytes. It throws to end the work. */
export type Progress = (step: string, done: number, total: number) => void;
