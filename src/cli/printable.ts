/** Characters that move the cursor, colour text or change its direction; not line ends and tabs. */
const unprintable = /(?!\n|\t|\r\n)[\p{Cc}\p{Bidi_Control}\u2028\u2029]/gu;

/**
 * Makes untrusted text safe for a terminal: control and direction characters become escapes such as `\u202e`, which mean the
 * same in JSON.
 */
export function printable(text: string): string {
  return text.replaceAll(unprintable, (found) => `\\u${found.charCodeAt(0).toString(16).padStart(4, '0')}`);
}
