import type { Finding } from '../../domain/finding.ts';
import { errorText } from '../../lib/file-errors.ts';

/** Makes the findings of one part. */
export function findingsOf(part: string): Record<Finding['level'], (text: string) => Finding> {
  const at = (level: Finding['level']) => (text: string) => ({ level, part, text });
  return { ok: at('ok'), warning: at('warning'), fault: at('fault'), unchecked: at('unchecked') };
}

/** The message of an error, without its full stop. */
export function messageOf(error: unknown): string {
  return errorText(error).replace(/\.$/, '');
}
