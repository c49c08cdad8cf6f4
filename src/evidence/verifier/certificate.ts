import { readUtf8 } from '../formats/encoding.ts';
import { malformed } from '../formats/failure.ts';

const advice = 'save the attachment evidence.json with a PDF reader, and check that file';

/** The dictionary of an attachment in a certificate, up to its first byte. */
const headerForm = /^<<.*?>>\s{0,9}stream\r?\n/s;

/** Characters of such a dictionary at most. Without a bound, a hostile file would take hours to search. */
const headerLengthMax = 1_000;

/**
 * Returns the text of a bundle in a file: the file itself, or of a certificate the attached bundle. What the pages of the PDF show
 * is not read. Throws VerificationFailure MALFORMED.
 */
export function bundleTextOf(bytes: Uint8Array): string {
  // Latin-1 has one character a byte.
  const file = new TextDecoder('latin1').decode(bytes);
  if (!file.startsWith('%PDF-')) return readUtf8(bytes, 'the bundle');
  const starts = [...file.matchAll(/<<\s{0,9}\/Type \/EmbeddedFile\b/g)];
  const [first] = starts;
  if (first === undefined) throw malformed(`the PDF has no attached bundle that can be read: ${advice}`);
  if (starts.length > 1) throw malformed(`the PDF has more than one attachment: ${advice}`);
  const [header = ''] = headerForm.exec(file.slice(first.index, first.index + headerLengthMax)) ?? [];
  const [, digits = ''] = /\/Length (\d+)\s/.exec(header) ?? [];
  const start = first.index + header.length;
  const end = start + Number(digits);
  const isWhole = /^\s{0,9}endstream\b/.test(file.slice(end, end + headerLengthMax));
  if (digits === '' || header.includes('/Filter') || !isWhole)
    throw malformed(`a program has changed the PDF: ${advice}`);
  return readUtf8(bytes.subarray(start, end), 'the attached bundle');
}
