import { filePageHeaders } from '../listen/page-headers.ts';
import { codeBlock, escaped, type Page } from './docs/layout.ts';
import type { HttpResponse } from './http-message.ts';

/** Returns the responder of a page of one file. Throws if the page states no Content-Security-Policy. */
export function createFilePage(html: Buffer): () => HttpResponse {
  const headers = filePageHeaders(html);
  return () => ({ status: 200, headers: { ...headers }, body: html });
}

/** The page about the evidence log: the keys that verify it, and its newest checkpoint if there is one. */
export function logPage(keys: readonly string[], checkpoint: string | undefined): Page {
  const [, size] = checkpoint?.split('\n') ?? [];
  const [origin = ''] = keys[0]?.split('+') ?? [];
  const newest =
    size === undefined
      ? 'No checkpoint has been published yet. The first one is published with the first record.'
      : `The newest <a href="checkpoint">checkpoint</a> covers ${escaped(size)} entries.`;
  const main = `<h1>Evidence log <code>${escaped(origin)}</code></h1>
<p>Every filing and every provenance record of this registry is an entry of an append-only log.
The log reveals nothing about a work: an entry is a number, a time, and a commitment that only the holder of the record can
open. ${newest}</p>

<h2>Verifier key</h2>
${codeBlock(keys.join('\n'))}
<p>The same <a href="vkey">as text</a>. <strong>A key that you take from the log itself proves nothing against the operator of
the log</strong>, who can show each visitor a different one. Get it another way and compare: from your contract, by letter, or from a
platform that files here. The operator prints it with
<code>artseal evidence vkey</code>. Then keep it.</p>

<h2>Checking evidence</h2>
<ul>
<li>An evidence bundle, which is the proof of one record: on the <a href="/verify">verifier page</a>, which computes in your
browser and works from disk as well, or with <code>artseal verify BUNDLE --key KEY</code>. Both take the key that you have;
for the same reason, save the page, or get the program from elsewhere.</li>
<li>The log as a whole: <code>artseal log audit URL --key KEY --pin FILE</code>, with the address of this page as URL. Keep the checkpoint
that it writes to FILE: a later audit uses it to detect a rewritten log.</li>
<li>With any program that reads C2SP tlog-tiles and RFC 6962 trees: <a href="checkpoint"><code>checkpoint</code></a>,
<code>tile/0/000</code>, <code>tile/entries/000</code> beside this page.</li>
</ul>
<p><a href="/docs/evidence">Check evidence</a> explains what this proves and what it does not. It also has the formats, so that you can
write your own verifier.</p>`;
  return { path: '/log/', title: `Evidence log ${origin}`, main };
}
