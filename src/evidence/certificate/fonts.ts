import { inflateSync } from 'node:zlib';
import { readFont, readFontRanges } from '../../packaging/packaged-files.ts';

/** The font of certificates: Noto Sans SC in slices, of which a page embeds those that it needs. */
export interface Fonts {
  /** The name of the slice that has a character; undefined if none has it. */
  sliceOf(character: string): string | undefined;
  /** The font file of a slice. */
  read(slice: string): Buffer;
}

/** Opens the font. It keeps the slices that were read. */
export function openFonts(): Fonts {
  const slices = new Map<number, string>();
  // Common characters are in several slices: the last one has Latin.
  for (const [name, ranges] of Object.entries(readFontRanges())) {
    const slice = name.replaceAll(/[[\]]/g, '');
    for (const range of ranges.split(',')) {
      const [first = '', last = first] = range.replace('U+', '').split('-');
      for (let code = Number.parseInt(first, 16); code <= Number.parseInt(last, 16); code += 1)
        slices.set(code, slice);
    }
  }
  const files = new Map<string, Buffer>();
  return {
    sliceOf: (character) => slices.get(character.codePointAt(0) ?? 0),
    read: (slice) => {
      const file = files.get(slice) ?? sfntOf(readFont(slice));
      files.set(slice, file);
      return file;
    },
  };
}

/** Sizes of WOFF and of SFNT, in bytes: the header, and the entry of a table. */
const woff = { header: 44, entry: 20 } as const;
const sfnt = { header: 12, entry: 16 } as const;

/** The SFNT in a WOFF file (W3C WOFF 1.0). pdfkit reads WOFF as well, and takes four times as long. */
function sfntOf(file: Buffer): Buffer {
  const tables = file.readUInt16BE(12);
  const power = Math.floor(Math.log2(tables));
  const header = Buffer.alloc(sfnt.header + tables * sfnt.entry);
  file.copy(header, 0, 4, 8);
  for (const [nth, value] of [tables, 16 * 2 ** power, power, 16 * (tables - 2 ** power)].entries())
    header.writeUInt16BE(value, 4 + 2 * nth);
  const parts = [header];
  let offset = header.length;
  for (let nth = 0; nth < tables; nth += 1) {
    const entry = file.subarray(woff.header + nth * woff.entry);
    const [at, compressed, length] = [entry.readUInt32BE(4), entry.readUInt32BE(8), entry.readUInt32BE(12)];
    const stored = file.subarray(at, at + compressed);
    const table = compressed < length ? inflateSync(stored) : stored;
    const to = sfnt.header + nth * sfnt.entry;
    entry.copy(header, to, 0, 4);
    entry.copy(header, to + 4, 16, 20);
    header.writeUInt32BE(offset, to + 8);
    header.writeUInt32BE(length, to + 12);
    const padded = Buffer.alloc(Math.ceil(length / 4) * 4);
    table.copy(padded);
    parts.push(padded);
    offset += padded.length;
  }
  return Buffer.concat(parts);
}
