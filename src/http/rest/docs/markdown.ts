import type { Tokens } from 'marked';
import { codeBlock, escaped, type Section } from './layout.ts';

/** A document as HTML. */
export interface Rendered {
  readonly html: string;
  /** Its sections of the second level. */
  readonly sections: readonly Section[];
}

/** Matches a block of code, or a line break between Chinese words, which browsers show as a space. */
const codeOrBreak = /^ *```.*?^ *```$|(?<=[\p{Script=Han}，。：；、！？）])\n *(?=[\p{Script=Han}（[])/gmsu;

/**
 * Renders GitHub's Markdown. Headings have the ids that they have on GitHub. `targetOf` returns where a link leads, or undefined
 * for a link that is shown as its text.
 */
export async function renderMarkdown(
  markdown: string,
  targetOf: (link: string) => string | undefined,
): Promise<Rendered> {
  // Only readers of guides need the parser.
  const { Marked } = await import('marked');
  const sections: Section[] = [];
  const used = new Map<string, number>();
  const marked = new Marked({
    renderer: {
      code: ({ text }) => codeBlock(text),
      // Narrow columns break paths at their slashes.
      codespan: ({ text }) => `<code>${escaped(text).replaceAll('/', '/<wbr>')}</code>`,
      heading({ tokens, depth, text }) {
        const id = headingId(text, used);
        const html = this.parser.parseInline(tokens);
        if (depth === 2)
          sections.push({ id, title: this.parser.parseInline(tokens, this.parser.textRenderer) });
        return `<h${depth} id="${id}">${html}</h${depth}>\n`;
      },
      link({ href, tokens }: Tokens.Link) {
        const html = this.parser.parseInline(tokens);
        const target = targetOf(href);
        return target === undefined ? html : `<a href="${escaped(target)}">${html}</a>`;
      },
    },
  });
  const html = await marked.parse(
    markdown.replaceAll(codeOrBreak, (match) => (match.includes('`') ? match : '')),
  );
  // The keyboard scrolls what takes focus.
  const tables = html.replaceAll('<table>', '<div class="table" tabindex="0"><table>');
  return { html: tables.replaceAll('</table>', '</table></div>'), sections };
}

/** The id that GitHub gives a heading. */
function headingId(heading: string, used: Map<string, number>): string {
  const id = heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
    .replaceAll(/\s/g, '-');
  const count = used.get(id) ?? 0;
  used.set(id, count + 1);
  return count === 0 ? id : `${id}-${count}`;
}
