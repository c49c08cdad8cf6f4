import { errorsPath, type HttpResponse } from './envelope.ts';
import { errorsPage, homePage } from './help-pages.ts';
import { escaped, pageResponse, plainPage } from './html.ts';
import type { PublicLog } from './log-routes.ts';

/** The dependencies of the pages. */
export interface PageDependencies {
  /** docs/verify.html. */
  readonly verifierPage: Buffer;
  readonly log: Pick<PublicLog, 'checkpoint' | 'verifierKeys'>;
}

/** The pages for browsers, by path. Throws if the verifier page states no Content-Security-Policy. */
export function createPages({
  verifierPage,
  log,
}: PageDependencies): ReadonlyMap<string, () => HttpResponse> {
  const policy = ownPolicy.exec(verifierPage.toString())?.[1];
  if (policy === undefined) throw new Error('docs/verify.html states no Content-Security-Policy.');
  return new Map([
    ['/', homePage],
    [errorsPath, errorsPage],
    ['/verify', () => pageResponse(verifierPage, policy)],
    ['/log', () => ({ status: 308, headers: { Location: '/log/' }, body: '' })],
    ['/log/', () => logPage(log)],
  ]);
}

/** The verifier page states its policy itself, so that it also applies to a copy on disk. */
const ownPolicy = /<meta http-equiv="Content-Security-Policy" content="([^"]+)"/;

/** The page about the evidence log. */
function logPage({ checkpoint, verifierKeys }: PageDependencies['log']): HttpResponse {
  const keys = verifierKeys();
  const [, size] = checkpoint()?.split('\n') ?? [];
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
