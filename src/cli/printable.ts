/** All that moves a cursor, colours text or turns its direction around; ends of lines and tabs are left. */
const unprintable = /(?!\n|\t|\r\n)[\p{Cc}\p{Bidi_Control}\u2028\u2029]/gu;

/**
 * Text as a terminal can show it whoever chose the names in it: what would act on the terminal, or show them in another
 * order, is written as `\u202e`. In JSON, which has these in strings alone, that stands for the same.
 */
export function printable(text: string): string {
  return text.replaceAll(unprintable, (found) => `\\u${found.charCodeAt(0).toString(16).padStart(4, '0')}`);
}
