import PDFDocument from 'pdfkit';
import encodeQR from 'qr';
import type { Bilingual, CertificateContent, Row } from './content.ts';
import { type Fonts, openFonts } from './fonts.ts';

/** The page: A4, in points. */
const page = { width: 595.28, height: 841.89, margin: 42 } as const;
const columnWidth = page.width - 2 * page.margin;
/** The side of the QR code. */
const qrSide = 198;
const nameWidth = 120;
const gap = 5;
/** Line height by font size. */
const leading = 1.32;
/** How the record is set: the first font size and number of lines a value with which it fits. */
const settings: readonly (readonly [size: number, lines: number])[] = [
  ...[9.5, 8.5, 7.5, 6.5, 5.5, 4.8].map((size) => [size, Number.POSITIVE_INFINITY] as const),
  ...[24, 16, 10, 6, 3, 1].map((lines) => [4.8, lines] as const),
];
const more = '… 全文见所附存证包 full text in the attached bundle';

const ink = '#1b1b1b';
const quiet = '#555555';

/** Characters of one slice of the font, or a line break between words. */
interface Run {
  readonly slice: string;
  readonly text: string;
  readonly width: number;
}

type Line = readonly Run[];

/** Returns the function that draws certificates: one page of PDF/A-3b with the bundle attached. */
export function createDrawing(): (content: CertificateContent) => Promise<Uint8Array> {
  const fonts = openFonts();
  return async (content) => {
    const row = content.timeStamp && (await timeStampRow(content.timeStamp));
    return draw({ ...content, log: [...content.log, ...(row ? [row] : [noTimeStamp])] }, fonts);
  };
}

const timeStampName = { zh: '时间戳', en: 'Time stamp' };
const noTimeStamp: Row = { name: timeStampName, value: '无 none' };

/** The line about a time stamp. It is read, and its authority is not checked. */
async function timeStampRow({ text, token }: NonNullable<CertificateContent['timeStamp']>): Promise<Row> {
  const { verifyToken } = await import('../formats/time-stamp.ts');
  const { timeMs, authority } = await verifyToken(token, text, undefined);
  return { name: timeStampName, value: `${new Date(timeMs).toISOString()}  ${authority}` };
}

async function draw(content: CertificateContent, fonts: Fonts): Promise<Uint8Array> {
  const made = new Date(content.atMs);
  const document = new PDFDocument({
    ...{ size: 'A4', margin: 0, subset: 'PDF/A-3b', pdfVersion: '1.7', lang: 'zh-CN', displayTitle: true },
    // PDF/A embeds all fonts, so the default one is not loaded.
    font: null as never,
    info: {
      ...{ Title: `${content.title.en} ${content.subject}`, Author: 'Artseal', Creator: 'Artseal' },
      ...{ Producer: 'Artseal', CreationDate: made, ModDate: made },
    },
  });
  const chunks: Buffer[] = [];
  document.on('data', (chunk: Buffer) => chunks.push(chunk));
  const ended = Promise.withResolvers<void>();
  document.on('end', ended.resolve);
  document.on('error', ended.reject);
  // Of the parts of the file, only the bundle is not compressed: see verifier/certificate.ts.
  document.compress = false;
  document.file(Buffer.from(content.bundle), {
    ...{ name: 'evidence.json', type: 'application/json', description: 'Artseal evidence bundle' },
    ...{ relationship: 'Data', creationDate: made, modifiedDate: made },
  });
  document.compress = true;
  drawPage(createPen(document, fonts), content);
  document.end();
  await ended.promise;
  return Buffer.concat(chunks);
}

type Pen = ReturnType<typeof createPen>;

/** Measures and draws text with the slices of the font. */
function createPen(document: PDFKit.PDFDocument, fonts: Fonts) {
  const registered = new Set<string>();
  const widths = new Map<string, number>();

  function use(slice: string): PDFKit.PDFDocument {
    if (!registered.has(slice)) document.registerFont(slice, fonts.read(slice));
    registered.add(slice);
    return document.font(slice);
  }

  /** The width of a character at size 1. */
  function widthOf(character: string, slice: string): number {
    const known = widths.get(character);
    if (known !== undefined) return known;
    const width = use(slice).fontSize(100).widthOfString(character) / 100;
    widths.set(character, width);
    return width;
  }

  /** Breaks a text into lines. A character that the font lacks is written as its code point. */
  function wrap(text: string, size: number, width: number): Line[] {
    const lines: Run[][] = [];
    for (const paragraph of text.split('\n')) {
      let line: Run[] = [];
      let used = 0;
      for (const word of wordsOf(paragraph)) {
        const runs = [...word].flatMap((character) => runsOf(character, size));
        const wordWidth = runs.reduce((sum, run) => sum + run.width, 0);
        if (used > 0 && used + wordWidth > width && wordWidth <= width) {
          lines.push(line);
          [line, used] = [[], 0];
        }
        for (const run of runs) {
          if (used > 0 && used + run.width > width) {
            lines.push(line);
            [line, used] = [[], 0];
          }
          line.push(run);
          used += run.width;
        }
      }
      lines.push(line);
    }
    return lines;
  }

  function runsOf(character: string, size: number): Run[] {
    const slice = fonts.sliceOf(character);
    if (slice !== undefined) return [{ slice, text: character, width: widthOf(character, slice) * size }];
    return [...`U+${character.codePointAt(0)?.toString(16).toUpperCase()}`].flatMap((digit) =>
      runsOf(digit, size),
    );
  }

  function drawLine(line: Line, x: number, y: number, size: number, color: string): void {
    let at = x;
    for (let from = 0; from < line.length; ) {
      const first = line[from] as Run;
      let end = from;
      let text = '';
      let width = 0;
      for (; end < line.length && line[end]?.slice === first.slice; end += 1) {
        text += line[end]?.text;
        width += line[end]?.width ?? 0;
      }
      use(first.slice).fontSize(size).fillColor(color).text(text, at, y, { lineBreak: false, features: [] });
      at += width;
      from = end;
    }
  }

  return {
    document,
    wrap,
    /** Draws lines, and returns the place under them. */
    lines: (lines: readonly Line[], x: number, y: number, size: number, color: string = ink): number => {
      for (const [nth, line] of lines.entries()) drawLine(line, x, y + nth * size * leading, size, color);
      return y + lines.length * size * leading;
    },
  };
}

/** The parts between which a line may break: words of letters, each Chinese character. */
const wordsOf = (text: string): readonly string[] =>
  text.match(
    /[\p{Script=Han}\u3000-\u303f\uff00-\uffef]|\s|[^\s\p{Script=Han}\u3000-\u303f\uff00-\uffef]+/gu,
  ) ?? [];

function drawPage(pen: Pen, content: CertificateContent): void {
  const { margin } = page;
  let y: number = margin;
  y = pen.lines(pen.wrap(content.title.zh, 22, columnWidth), margin, y, 22) + 1;
  y = pen.lines(pen.wrap(`${content.title.en}  ${content.subject}`, 13, columnWidth), margin, y, 13, quiet);
  y = rule(pen, y + gap);
  const bottom = belowRecord(pen, content);
  drawRecord(pen, content.record, y, bottom.top - 2 * gap);
  rule(pen, bottom.top - gap);
  bottom.draw();
}

/** Draws a line over the column, and returns the place under it. */
function rule({ document }: Pen, y: number): number {
  document
    .moveTo(page.margin, y)
    .lineTo(page.width - page.margin, y)
    .lineWidth(0.6)
    .stroke(quiet);
  return y + gap;
}

/** Draws the record so that it ends above `end`. Long values are cut if the smallest size is too large. */
function drawRecord(pen: Pen, record: readonly Row[], top: number, end: number): void {
  for (const [size, linesMax] of settings) {
    const rows = record.map((row) => wrapRow(pen, row, size, columnWidth, linesMax));
    if (top + heightOf(rows, size) > end) continue;
    drawRows(pen, rows, page.margin, top, size);
    return;
  }
  throw new Error('The record does not fit on the page.');
}

const heightOf = (rows: readonly WrappedRow[], size: number): number =>
  rows.reduce((sum, { lines }) => sum + lines.length * size * leading + gap / 2, 0);

interface WrappedRow {
  readonly name: Line;
  readonly lines: readonly Line[];
}

function wrapRow(
  pen: Pen,
  { name, value }: Row,
  size: number,
  width: number,
  linesMax = Number.POSITIVE_INFINITY,
): WrappedRow {
  const all = pen.wrap(value, size, width - nameWidth);
  const lines = all.length > linesMax ? [...all.slice(0, linesMax - 1), ...pen.wrap(more, size, width)] : all;
  return { name: pen.wrap(nameText(name), size, nameWidth)[0] ?? [], lines };
}

const nameText = ({ zh, en }: Bilingual): string => `${zh} ${en}`;

function drawRows(pen: Pen, rows: readonly WrappedRow[], x: number, top: number, size: number): void {
  let y = top;
  for (const { name, lines } of rows) {
    pen.lines([name], x, y, size, quiet);
    y = pen.lines(lines, x + nameWidth, y, size) + gap / 2;
  }
}

/** What is under the record: the log beside the QR code, then the sections. Returns where it begins, and draws it. */
function belowRecord(pen: Pen, { log, sections, link, linkCaption, atMs }: CertificateContent) {
  const size = 7.5;
  const hasCode = link !== '';
  const width = hasCode ? columnWidth - qrSide - 2 * gap : columnWidth;
  const rows = log.map((row) => wrapRow(pen, row, size, width));
  const logHeight = heightOf(rows, size);
  const caption = pen.wrap(nameText(linkCaption), 6.5, qrSide);
  const codeHeight = hasCode ? qrSide + caption.length * 6.5 * leading : 0;
  const texts = sections.map(({ title, lines }) => ({
    title: pen.wrap(nameText(title), 8.5, columnWidth),
    lines: lines.flatMap(({ zh, en }) => [...pen.wrap(zh, 7, columnWidth), ...pen.wrap(en, 7, columnWidth)]),
  }));
  const textHeight = texts.reduce(
    (sum, { title, lines }) => sum + title.length * 8.5 * leading + lines.length * 7 * leading + gap,
    0,
  );
  const made = pen.wrap(`制作时间 Made at ${new Date(atMs).toISOString()}`, 6.5, columnWidth);
  const madeHeight = made.length * 6.5 * leading;
  const top = page.height - page.margin - madeHeight - textHeight - gap - Math.max(logHeight, codeHeight);
  return {
    top,
    draw: (): void => {
      drawRows(pen, rows, page.margin, top, size);
      const right = page.width - page.margin - qrSide;
      if (hasCode) {
        drawCode(pen, link, right, top);
        pen.lines(caption, right, top + qrSide, 6.5, quiet);
      }
      let y = top + Math.max(logHeight, codeHeight) + gap;
      for (const { title, lines } of texts) {
        y = pen.lines(title, page.margin, y, 8.5);
        y = pen.lines(lines, page.margin, y, 7, quiet) + gap;
      }
      pen.lines(made, page.margin, y, 6.5, quiet);
    },
  };
}

/** Draws a QR code whose quiet zone is the margin around it. */
function drawCode({ document }: Pen, link: string, x: number, y: number): void {
  const rows = encodeQR(link, 'raw', { ecc: 'low', border: 2 });
  const side = qrSide / rows.length;
  for (const [nth, row] of rows.entries())
    for (const [place, isDark] of row.entries())
      if (isDark) document.rect(x + place * side, y + nth * side, side, side);
  document.fill(ink);
}
