import { hash } from 'node:crypto';
import { pageHeaders } from '../../listen/page-headers.ts';
import type { HttpResponse } from '../http-message.ts';
import { type Guide, guides, guidesFor, isTranslationOf } from './guides.ts';

/** Reads a packaged file by its path from the root of the project. */
export type ReadFile = (path: string) => Buffer;

/** What differs between pages. `main` is HTML. */
export interface Page {
  /** The path of its URL. */
  readonly path: string;
  readonly title: string;
  readonly main: string;
  /** Whether it has a form that is sent to this server. */
  readonly hasForm?: boolean;
  /** The sections that are listed beside the text. */
  readonly sections?: readonly Section[];
  /** Scripts after the content, and the policy for what they load. The page then has its whole width for its content. */
  readonly application?: { readonly scripts: string; readonly policy: string };
}

/** A part of a page: the id of its heading, and the heading as text. */
export interface Section {
  readonly id: string;
  readonly title: string;
}

/** Returns the response with a page. */
export type Layout = (page: Page) => HttpResponse;

/** Returns the layout of all pages. It reads its style with the first page. */
export function createLayout(read: ReadFile): Layout {
  let style: string | undefined;
  return (page) => {
    style ??= read('docs/site/style.css').toString();
    const policy = page.application?.policy ?? `style-src 'sha256-${hash('sha256', style, 'base64')}'`;
    const forms = page.hasForm ? "'self'" : "'none'";
    const headers = pageHeaders(`default-src 'none'; ${policy}; base-uri 'none'; form-action ${forms}`);
    return { status: 200, headers, body: htmlOf(page, style) };
  };
}

function htmlOf({ path, title, main, sections = [], application }: Page, style: string): string {
  const shown = guides.find((guide) => guide.path === path);
  const language = shown?.language ?? 'en';
  const translations = guides.filter((guide) => shown !== undefined && isTranslationOf(guide, shown));
  // An application brings its own main element.
  const element = application === undefined ? 'main' : 'div';
  return `<!doctype html>
<html lang="${language}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escaped(title)} · Artseal</title>
<style>${style}</style>
</head>
<body${application === undefined ? '' : ' class="application"'}>
<header lang="en">
<a class="skip" href="#content">Skip to content</a>
<button popovertarget="pages">Menu</button>
<a class="brand" href="/docs/">Artseal <span>docs</span></a>
${translations.map(languageLink).join('\n')}
<a href="/docs/reference">API reference</a>
<a href="/docs/try">Try a call</a>
</header>
<nav id="pages" popover aria-label="Pages" lang="en">
${groupsFor(language)
  .map(([title, links]) => `<h2>${title}</h2>\n${linkList(links, path)}`)
  .join('\n')}
</nav>
<${element} id="content" tabindex="-1">
${main}
</${element}>
${sections.length < 3 ? '' : sectionList(sections)}
${application?.scripts ?? ''}
</body>
</html>
`;
}

const languageNames: Readonly<Record<string, string>> = { en: 'English', zh: '中文' };

function languageLink({ path, language }: Guide): string {
  return `<a href="${path}" lang="${language}" hreflang="${language}">${languageNames[language]}</a>`;
}

type PageLink = Pick<Guide, 'path' | 'title'> & Partial<Guide>;

/** The list of pages for readers of a language. */
function groupsFor(language: string): readonly (readonly [title: string, links: readonly PageLink[]])[] {
  return [
    [
      'Start',
      [
        { path: '/docs/', title: 'Overview' },
        { path: '/docs/try', title: 'Try a call' },
      ],
    ],
    ['Guides', guidesFor(language)],
    [
      'Reference',
      [
        { path: '/docs/reference', title: 'API reference' },
        { path: '/docs/errors', title: 'Error codes' },
        { path: '/docs/webhooks', title: 'Webhook payloads' },
        { path: '/openapi.yaml', title: 'OpenAPI document' },
      ],
    ],
    [
      'This registry',
      [
        { path: '/log/', title: 'Evidence log' },
        { path: '/verify', title: 'Verify evidence' },
        { path: '/readyz', title: 'Status' },
      ],
    ],
  ];
}

function linkList(links: readonly PageLink[], current: string): string {
  const items = links.map(({ path, title, language = 'en' }) => {
    const mark = path === current ? ' aria-current="page"' : '';
    return `<li><a href="${path}" lang="${language}"${mark}>${escaped(title)}</a></li>`;
  });
  return `<ul>\n${items.join('\n')}\n</ul>`;
}

function sectionList(sections: readonly Section[]): string {
  const items = sections.map(({ id, title }) => `<li><a href="#${id}">${escaped(title)}</a></li>`);
  return `<nav class="sections" aria-labelledby="sections">
<h2 id="sections" lang="en">On this page</h2>
<ul>\n${items.join('\n')}\n</ul>
</nav>`;
}

const entities: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };

/** Escapes a text for HTML. */
export function escaped(text: string): string {
  return text.replaceAll(/[&<>"]/g, (character) => entities[character] ?? '');
}

/** A block of code. It takes focus, so that the keyboard can scroll it. */
export function codeBlock(code: string): string {
  return `<pre tabindex="0"><code>${escaped(code)}</code></pre>`;
}
