import { type Violation, wellFormedRule } from './violation.ts';

/** Inclusive bounds of a text, in Unicode code points. */
export interface TextBounds {
  readonly min: number;
  readonly max: number;
}

const controlCharacter = /\p{Cc}/u;

/** Invisible characters, which make different texts look alike. No script needs them, unlike ZWJ and ZWNJ. */
const deceptiveCharacters: Readonly<Record<string, string>> = {
  '\u202a': 'LEFT-TO-RIGHT EMBEDDING',
  '\u202b': 'RIGHT-TO-LEFT EMBEDDING',
  '\u202c': 'POP DIRECTIONAL FORMATTING',
  '\u202d': 'LEFT-TO-RIGHT OVERRIDE',
  '\u202e': 'RIGHT-TO-LEFT OVERRIDE',
  '\u2066': 'LEFT-TO-RIGHT ISOLATE',
  '\u2067': 'RIGHT-TO-LEFT ISOLATE',
  '\u2068': 'FIRST STRONG ISOLATE',
  '\u2069': 'POP DIRECTIONAL ISOLATE',
  '\u200b': 'ZERO WIDTH SPACE',
  '\u2060': 'WORD JOINER',
  '\ufeff': 'ZERO WIDTH NO-BREAK SPACE',
};
const deceptive = /[\u202a-\u202e\u2066-\u2069\u200b\u2060\ufeff]/;
const visibleCharacter = /\P{White_Space}/u;

/** The rule that a text with a deceptive character breaks: it names the first one. Undefined if it has none. */
export function deceptiveCharacterRule(value: string): string | undefined {
  const [found] = deceptive.exec(value) ?? [];
  if (found === undefined) return undefined;
  const code = found.charCodeAt(0).toString(16).toUpperCase();
  return `must not have U+${code} ${deceptiveCharacters[found]}`;
}

/** Checks a text as sent: its length, no control or deceptive characters, well-formed Unicode, not only white space. */
export function checkText(field: string, value: string, { min, max }: TextBounds): Violation[] {
  const violation = (rule: string): Violation[] => [{ field, rule }];
  if (value === '') return violation(`is required: ${min} to ${max} characters`);
  // A code point takes one or two UTF-16 units, so for most texts their length alone is enough.
  if (value.length > max && (value.length > 2 * max || [...value].length > max)) {
    return violation(`must have ${min} to ${max} characters`);
  }
  if (!value.isWellFormed()) return violation(wellFormedRule);
  if (controlCharacter.test(value)) return violation('must have no control characters');
  const deceptiveRule = deceptiveCharacterRule(value);
  if (deceptiveRule !== undefined) return violation(deceptiveRule);
  if (!visibleCharacter.test(value)) return violation('must have a character that is not white space');
  return [];
}
