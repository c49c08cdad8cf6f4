import { readUtf8 } from '../formats/encoding.ts';
import { malformed } from '../formats/failure.ts';

const advice = 'save the attachment evidence.json with a PDF reader, and check that file';

/**
 * Returns the text of a bundle in a file: the file itself, or of a certificate the attached bundle. What the pages of the PDF show
 * is not read. Throws VerificationFailure MALFORMED.
 */
export function bundleTextOf(bytes: Uint8Array): string {
  // Latin-1 has one character a byte.
  const file = new TextDecoder('latin1').decode(bytes);
  if (!file.startsWith('%PDF-')) return readUtf8(bytes, 'the bundle');
  const attachments = [...file.matchAll(/<<\s*\/Type \/EmbeddedFile\b.*?>>\s*stream\r?\n/gs)];
  const [attachment] = attachments;
  if (attachment === undefined) throw malformed(`the PDF has no attached bundle that can be read: ${advice}`);
  if (attachments.length > 1) throw malformed(`the PDF has more than one attachment: ${advice}`);
  const [header] = attachment;
  const length = Number(/\/Length (\d+)\s/.exec(header)?.[1] ?? Number.NaN);
  if (header.includes('/Filter') || Number.isNaN(length))
    throw malformed(`a program has changed the PDF: ${advice}`);
  const start = attachment.index + header.length;
  return readUtf8(bytes.subarray(start, start + length), 'the attached bundle');
}
