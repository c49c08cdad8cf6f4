/** What a spreadsheet takes for the beginning of a formula, in the wide forms of East Asian scripts as well. */
const formulaStart = /^\s*[=+\-@\uff1d\uff0b\uff0d\uff20]/;

/**
 * A line of CSV as RFC 4180 has it, without its end. A text that a spreadsheet would carry out as a formula has `'`
 * before it; every text is quoted, so that a spreadsheet that divides by semicolons leaves it whole.
 */
export function csvLine(fields: readonly (string | number)[]): string {
  return fields.map((field) => (typeof field === 'number' ? String(field) : quoted(field))).join(',');
}

function quoted(text: string): string {
  const harmless = formulaStart.test(text) ? `'${text}` : text;
  return `"${harmless.replaceAll('"', '""')}"`;
}
