import { hash } from 'node:crypto';
import { exampleArtwork } from '../../domain/example.ts';
import { type Reason, reasons } from '../../domain/reason.ts';
import { reasonHelp } from '../../domain/reason-help.ts';
import type { HttpResponse } from './http-message.ts';

/** A page of one file states its policy itself, so that it also applies to a copy on disk. */
const ownPolicy = /<meta http-equiv="Content-Security-Policy" content="([^"]+)"/;

/** Returns the responder of a page of one file. Throws if the page states no Content-Security-Policy. */
export function createFilePage(html: Buffer): () => HttpResponse {
  const policy = ownPolicy.exec(html.toString())?.[1];
  if (policy === undefined) throw new Error('A page in docs/ states no Content-Security-Policy.');
  return () => pageResponse(html, policy);
}

/** The page about the evidence log: the keys that verify it, and its newest checkpoint if there is one. */
export function logPage(keys: readonly string[], checkpoint: string | undefined): HttpResponse {
  const [, size] = checkpoint?.split('\n') ?? [];
  const [origin = ''] = keys[0]?.split('+') ?? [];
  const newest =
    size === undefined
      ? 'No checkpoint has been published yet. The first one is published with the first record.'
      : `The newest <a href="checkpoint">checkpoint</a> covers ${escaped(size)} entries.`;
  return plainPage(
    `Evidence log ${escaped(origin)}`,
    `<h1>Evidence log <code>${escaped(origin)}</code></h1>
<p>Every filing and every provenance record of this registry is an entry of an append-only log.
The log reveals nothing about a work: an entry is a number, a time, and a commitment that only the holder of the record can
open. ${newest}</p>

<h2>Verifier key</h2>
<pre>${escaped(keys.join('\n'))}</pre>
<p>The same <a href="vkey">as text</a>. <strong>A key that you take from the log itself proves nothing against the operator of
the log</strong>, who can show each visitor a different one. Get it another way and compare: from your contract, by letter, or from a
platform that files here. The operator prints it with
<code>artseal evidence vkey</code>. Then keep it.</p>

<h2>Checking evidence</h2>
<ul>
<li>An evidence bundle, which is the proof of one record: on the <a href="../../verify">verifier page</a>, which computes in your
browser and works from disk as well, or with <code>artseal verify BUNDLE --key KEY</code>. Both take the key that you have;
for the same reason, save the page, or get the program from elsewhere.</li>
<li>The log as a whole: <code>artseal log audit URL --key KEY --pin FILE</code>, with the address of this page as URL. Keep the checkpoint
that it writes to FILE: a later audit uses it to detect a rewritten log.</li>
<li>With any program that reads C2SP tlog-tiles and RFC 6962 trees: <a href="checkpoint"><code>checkpoint</code></a>,
<code>tile/0/000</code>, <code>tile/entries/000</code> beside this page.</li>
</ul>
<p><code>docs/evidence.md</code> of Artseal explains what this proves and what it does not. It also has the formats, so that you can
write your own verifier.</p>`,
  );
}

/** The page that explains each error. */
export function errorsPage(): HttpResponse {
  const sections = (Object.keys(reasons) as Reason[]).map(errorSection).join('\n');
  return plainPage(
    'Errors of Artseal',
    `<h1>Errors</h1>
<p>A rejected REST call returns <code>{"code","message","requestId"}</code>, and the header <code>Link</code> leads here. A rejected
call of the internal API returns the code as <code>google.rpc.ErrorInfo.reason</code>. <code>message</code> is for people; its
wording may change. Send the operator the request id with every question.</p>
<p>What each operation returns is in the <a href="../../openapi.yaml">OpenAPI document</a>.</p>
${sections}`,
  );
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

/** The page at `/`. */
export function homePage(): HttpResponse {
  return plainPage(
    'Artseal',
    `<h1>Artseal</h1>
<p>This is the API of a registry of artworks. It files works, gives evidence of each filing, and opens escrows for their sale.
Art platforms call it with signed requests. There is no login.</p>

<h2>A first call</h2>
<p>You need an API key and its secret, which the operator issues. A sandbox creates a pair at its first start, in
<code>sandbox-credentials.json</code> in its data folder. Run this in the folder where you started it:</p>
<pre>artseal call POST /api/v1/filing '${escaped(JSON.stringify(exampleArtwork))}'</pre>
<p><code>artseal sign</code> prints the headers of a signed request for curl. The OpenAPI document says how requests are signed.</p>

<h2>More</h2>
<ul>
<li><a href="openapi.yaml">OpenAPI document</a>: every route, field and error</li>
<li><a href="docs/errors">Errors</a>: what each code means and what to do</li>
<li><a href="verify">Verify evidence</a> in your browser</li>
<li><a href="log/">The evidence log</a> and its keys</li>
<li><a href="healthz">Health</a> of the service</li>
</ul>`,
  );
}

/** A response with a page and its Content-Security-Policy. */
function pageResponse(body: string | Uint8Array, policy: string): HttpResponse {
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
function plainPage(title: string, main: string): HttpResponse {
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
function escaped(text: string): string {
  return text.replaceAll(/[&<>"]/g, (character) => entities[character] ?? '');
}
