import { errorText } from '../../lib/file-errors.ts';

/** What was found of a part of a deployment. */
export interface Finding {
  /** `unchecked` where something else has to be put right before it can be looked at. */
  readonly level: 'ok' | 'warning' | 'fault' | 'unchecked';
  readonly part: string;
  /** A sentence without its full stop; where something is wrong it says what to do. */
  readonly text: string;
}

/** Makes the findings of one part. */
export function findingsOf(part: string): Record<Finding['level'], (text: string) => Finding> {
  const at = (level: Finding['level']) => (text: string) => ({ level, part, text });
  return { ok: at('ok'), warning: at('warning'), fault: at('fault'), unchecked: at('unchecked') };
}

/** What an error says. */
export function messageOf(error: unknown): string {
  return errorText(error).replace(/\.$/, '');
}
