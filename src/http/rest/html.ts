import { hash } from 'node:crypto';
import type { HttpResponse } from './envelope.ts';

/** A response with a page and its Content-Security-Policy. */
export function pageResponse(body: string | Uint8Array, policy: string): HttpResponse {
  return {
    status: 200,
    headers: {
      'Content-Type': 'text/html; charset=utf-8',
      // Clickjacking: another site could frame the page and cover parts of it.
      'Content-Security-Policy': `${policy}; frame-ancestors 'none'`,
      'X-Content-Type-Options': 'nosniff',
      'Referrer-Policy': 'no-referrer',
      'Cache-Control': 'no-cache',
    },
    body,
  };
}

const style =
  ':root{color-scheme:light dark}body{max-width:46rem;margin:0 auto;padding:1rem;font:1.0625rem/1.5 system-ui,sans-serif}' +
  'code,pre{overflow-wrap:anywhere;white-space:pre-wrap}';
const policy = `default-src 'none'; style-src 'sha256-${hash('sha256', style, 'base64')}'; base-uri 'none'; form-action 'none'`;

/** A page without scripts. Title and body are HTML. */
export function plainPage(title: string, main: string): HttpResponse {
  const html = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title}</title>
<style>${style}</style>
</head>
<body>
<main>
${main}
</main>
</body>
</html>
`;
  return pageResponse(html, policy);
}

const entities: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };

/** Escapes a text for HTML. */
export function escaped(text: string): string {
  return text.replaceAll(/[&<>"]/g, (character) => entities[character] ?? '');
}
