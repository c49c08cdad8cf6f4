import { hash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { promisify } from 'node:util';
import { brotliDecompress } from 'node:zlib';
import { type HttpResponse, jsonType } from '../http-message.ts';
import type { Layout, ReadFile } from './layout.ts';

/** The version of Scalar, which renders the reference. It is a part of the script's URL. */
export const scalarVersion = '1.76.3';
/** The packaged file with Scalar's script, compressed with Brotli. */
export const scalarFile = `docs/site/scalar-${scalarVersion}.js.br`;
/** The OpenAPI document as the reference shows it, and as the page of webhook payloads reads it. */
export const referenceFile = 'docs/site/reference.json';

const scriptPath = `/docs/scalar-${scalarVersion}.js`;
const documentPath = '/docs/reference.json';

/** Scalar without features that ask other hosts, and without its requests, which cannot sign. */
const configuration = {
  url: documentPath,
  agent: { disabled: true },
  mcp: { disabled: true },
  showDeveloperTools: 'never',
  telemetry: false,
  withDefaultFonts: false,
  hideClientButton: true,
  hideTestRequestButton: true,
  hiddenClients: true,
  hideDarkModeToggle: true,
  documentDownloadType: 'none',
  theme: 'none',
};
const start = `Scalar.createApiReference('#reference', ${JSON.stringify(configuration)});
// What Scalar leaves out: code that scrolls takes focus, and the search says that it is closed.
new MutationObserver(() => {
  for (const code of document.querySelectorAll('code.custom-scroll:not([tabindex])')) code.tabIndex = 0;
  for (const search of document.querySelectorAll('[role=combobox]:not([aria-expanded])')) search.ariaExpanded = 'false';
}).observe(document.body, { childList: true, subtree: true });`;
const policy = [
  `script-src 'self' 'sha256-${hash('sha256', start, 'base64')}'`,
  // Scalar inserts style elements.
  "style-src 'unsafe-inline'",
  "connect-src 'self'",
  'img-src data:',
].join('; ');

/** The page of the API reference, and what it loads, by path. */
export function referenceRoutes(read: ReadFile, layout: Layout) {
  let script: Promise<Buffer> | undefined;
  return [
    [
      '/docs/reference',
      () =>
        layout({
          path: '/docs/reference',
          title: 'API reference',
          main: `<noscript><p>The reference needs JavaScript. <a href="/openapi.yaml">The OpenAPI document</a> does not.</p></noscript>
<div id="reference"></div>`,
          application: {
            scripts: `<script src="${scriptPath}"></script>\n<script>${start}</script>`,
            policy,
          },
        }),
    ],
    [documentPath, () => fileResponse(read(referenceFile), jsonType, 'no-cache')],
    [
      scriptPath,
      async ({ headers }: IncomingMessage) => {
        const response = fileResponse(
          read(scalarFile),
          'text/javascript',
          'public, max-age=31536000, immutable',
        );
        response.headers.Vary = 'Accept-Encoding';
        if (takesBrotli(headers['accept-encoding'])) {
          response.headers['Content-Encoding'] = 'br';
          return response;
        }
        script ??= promisify(brotliDecompress)(response.body);
        return { ...response, body: await script };
      },
    ],
  ] as const;
}

/** Responds with a file. */
export function fileResponse(body: Uint8Array, type: string, cache: string): HttpResponse {
  return {
    status: 200,
    headers: { 'Content-Type': type, 'Cache-Control': cache, 'X-Content-Type-Options': 'nosniff' },
    body,
  };
}

/** Whether a client accepts Brotli (RFC 9110). */
function takesBrotli(accepted = ''): boolean {
  return accepted.split(',').some((coding) => /^\s*br\s*(;\s*q=(1|0\.0*[1-9])\S*)?\s*$/i.test(coding));
}
