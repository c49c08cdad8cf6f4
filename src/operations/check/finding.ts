import { errorText } from '../../lib/file-errors.ts';

/** The result of a check of one part of a deployment. */
export interface Finding {
  /** `unchecked` if another fault prevents the check. */
  readonly level: 'ok' | 'warning' | 'fault' | 'unchecked';
  readonly part: string;
  /** A sentence without its full stop; for a warning or fault it says what to do. */
  readonly text: string;
}

/** Makes the findings of one part. */
export function findingsOf(part: string): Record<Finding['level'], (text: string) => Finding> {
  const at = (level: Finding['level']) => (text: string) => ({ level, part, text });
  return { ok: at('ok'), warning: at('warning'), fault: at('fault'), unchecked: at('unchecked') };
}

/** The message of an error, without its full stop. */
export function messageOf(error: unknown): string {
  return errorText(error).replace(/\.$/, '');
}
