import type { IncomingMessage } from 'node:http';
import { exampleArtwork } from '../../../domain/example.ts';
import { type Reason, reasons } from '../../../domain/reason.ts';
import { reasonHelp } from '../../../domain/reason-help.ts';
import { errorsPath, type HttpResponse, jsonType } from '../http-message.ts';
import { collectionFile, collectionPath, type Guide, guides, targetOf } from './guides.ts';
import { codeBlock, escaped, type Layout, type Page, type ReadFile } from './layout.ts';
import { type Rendered, renderMarkdown } from './markdown.ts';
import { fileResponse, referenceFile, referenceRoutes } from './reference.ts';

/** Responds to GET and HEAD of a path. */
export type Responder = (request: IncomingMessage) => HttpResponse | Promise<HttpResponse>;

/** The path of the first page. */
export const homePath = '/docs/';

/** The pages of the documentation, by path. They are rendered when they are first requested. */
export function createSite(readFile: ReadFile, layout: Layout): readonly (readonly [string, Responder])[] {
  // Reading a megabyte for each download would delay signed calls.
  const files = new Map<string, Buffer>();
  const read: ReadFile = (path) => files.getOrInsertComputed(path, readFile);
  let webhooks: Page | undefined;
  return [
    [homePath, () => layout(homePage())],
    [errorsPath, () => layout(errorsPage())],
    [
      '/docs/webhooks',
      () => {
        webhooks ??= webhooksPage(JSON.parse(read(referenceFile).toString()));
        return layout(webhooks);
      },
    ],
    [collectionPath, () => fileResponse(read(collectionFile), jsonType, 'no-cache')],
    ...referenceRoutes(read, layout),
    ...guides.map((guide) => [guide.path, guideResponder(guide, read, layout)] as const),
  ];
}

function guideResponder({ file, title, path }: Guide, read: ReadFile, layout: Layout): Responder {
  let rendered: Promise<Rendered> | undefined;
  return async () => {
    rendered ??= renderMarkdown(read(file).toString(), (link) => targetOf(file, link));
    const { html, sections } = await rendered;
    return layout({ path, title, main: html, sections });
  };
}

/** The first page: what the API does, a first call, and where to read on. */
export function homePage(): Page {
  const main = `<h1>Artseal API</h1>
<p class="lead">File artworks, prove each filing to anyone, and sell the works in escrow. The API of this registry is JSON over
HTTP, and every call is signed.</p>

<h2 id="first-call">A first call</h2>
<p>You need an API key (<code>ak_…</code>) and its secret (<code>sk_…</code>), which the operator issues. A sandbox creates a pair at
its first start, in <code>sandbox-credentials.json</code> in its data folder.</p>
<ul>
<li><strong>In the browser:</strong> <a href="/docs/try#createFiling">file an artwork</a> and see what is signed and sent. The secret
stays on the page.</li>
<li><strong>In a terminal or your own code:</strong> <a href="/docs/platforms/signing">sign requests</a> with openssl and curl, or
in your language.</li>
<li><strong>On the machine of a sandbox:</strong> run this in the folder in which you started it.
${codeBlock(`artseal call POST /api/v1/filing '${JSON.stringify(exampleArtwork, undefined, 2)}'`)}</li>
</ul>

<h2 id="more">Read on</h2>
<ul class="cards">
${cards.map(([path, title, text]) => `<li><a href="${path}">${title}</a><br>${text}</li>`).join('\n')}
</ul>

<h2 id="chinese" lang="zh">中文指南</h2>
<ul lang="zh">
${guides
  .filter(({ language }) => language === 'zh')
  .map(({ path, title }) => `<li><a href="${path}" hreflang="zh">${title}</a></li>`)
  .join('\n')}
</ul>`;
  return { path: homePath, title: 'Overview', main };
}

const cards = [
  ['/docs/platforms', 'Guides', 'Signing, filing, escrow, webhooks and errors, step by step.'],
  ['/docs/reference', 'API reference', 'Every operation with its fields, responses and errors.'],
  [errorsPath, 'Error codes', 'What each code means, and what to do.'],
  ['/docs/webhooks', 'Webhook payloads', 'An example of each event that the service sends.'],
  ['/docs/evidence', 'Check evidence', 'What a bundle proves, and how to verify it without this registry.'],
  ['/verify', 'Verify evidence', 'Check a bundle in your browser.'],
  ['/log/', 'Evidence log', 'The public log of this registry, and its keys.'],
  ['/readyz', 'Status', 'Whether this service can take calls now.'],
] as const;

/** The page that explains each error. */
export function errorsPage(): Page {
  const codes = Object.keys(reasons) as Reason[];
  const main = `<h1>Error codes</h1>
<p>A rejected REST call returns <code>{"code","message","requestId"}</code>, and the header <code>Link</code> leads here. A rejected
call of the internal API returns the code as <code>google.rpc.ErrorInfo.reason</code>. <code>message</code> is for people; its
wording may change. Send the operator the request id with every question.</p>
<p>The <a href="/docs/reference">API reference</a> lists what each operation returns. <a href="/docs/platforms/errors">Errors, retries
and limits</a> says how to handle them.</p>
${codes.map(errorSection).join('\n')}`;
  return {
    path: errorsPath,
    title: 'Error codes',
    main,
    sections: codes.map((code) => ({ id: code, title: code })),
  };
}

function errorSection(reason: Reason): string {
  const { http, code } = reasons[reason];
  const { condition, action } = reasonHelp[reason];
  const status = reason === 'CANCELLED' ? code : `HTTP ${http}, gRPC ${code}`;
  return `<h2 id="${reason}">${reason}</h2>
<p><small>${status}</small></p>
<p>${withCode(condition)}</p>
<p>${withCode(action)}</p>`;
}

/** A sentence as HTML; text between backticks becomes code. */
function withCode(sentence: string): string {
  return escaped(sentence).replaceAll(/`([^`]*)`/g, '<code>$1</code>');
}

/** A webhook of the OpenAPI document. */
interface Webhook {
  readonly post: {
    readonly summary: string;
    readonly requestBody: { readonly content: Readonly<Record<string, { readonly example: unknown }>> };
  };
}

/** The page with the body of each webhook, by the type of its event. */
function webhooksPage({ webhooks }: { readonly webhooks: Readonly<Record<string, Webhook>> }): Page {
  const types = Object.entries(webhooks);
  const main = `<h1>Webhook payloads</h1>
<p>The service sends each event to your endpoints as the body of a POST. <code>data</code> is the event as
<code>GET /api/v1/events</code> returns it. Ignore types and members that you do not know: more will follow.</p>
<p><a href="/docs/platforms/webhooks">Events and webhooks</a> says how to register an endpoint and how to verify what it receives.</p>
${types.map(([type, webhook]) => webhookSection(type, webhook)).join('\n')}`;
  const sections = types.map(([type]) => ({ id: type, title: type }));
  return { path: '/docs/webhooks', title: 'Webhook payloads', main, sections };
}

function webhookSection(type: string, { post }: Webhook): string {
  const examples = Object.values(post.requestBody.content).map(({ example }) =>
    codeBlock(JSON.stringify(example, undefined, 2)),
  );
  return `<h2 id="${type}">${type}</h2>\n<p>${escaped(post.summary)}.</p>\n${examples.join('\n')}`;
}
