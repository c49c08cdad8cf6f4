/** The result of a check of one part of a deployment. */
export interface Finding {
  /** `unchecked` if another fault prevents the check. */
  readonly level: 'ok' | 'warning' | 'fault' | 'unchecked';
  readonly part: string;
  /** A sentence without its full stop; for a warning or fault it says what to do. */
  readonly text: string;
}
