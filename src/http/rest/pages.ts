import { type Answer, errorsPath } from './envelope.ts';
import { errorsPage, homePage } from './help-pages.ts';
import { escaped, pageAnswer, plainPage } from './html.ts';
import type { PublicLog } from './log-routes.ts';

/** The pages that people read in a browser: about the service, its errors and its evidence log, and the one that verifies evidence. */
export interface PageDependencies {
  /** docs/verify.html. */
  readonly verifierPage: Buffer;
  readonly log: Pick<PublicLog, 'checkpoint' | 'verifierKeys'>;
}

/** How pages are answered, by their paths. Throws where the verifier page states no policy of its own. */
export function createPages({ verifierPage, log }: PageDependencies): ReadonlyMap<string, () => Answer> {
  const policy = ownPolicy.exec(verifierPage.toString())?.[1];
  if (policy === undefined) throw new Error('docs/verify.html states no Content-Security-Policy.');
  return new Map([
    ['/', homePage],
    [errorsPath, errorsPage],
    ['/verify', () => pageAnswer(verifierPage, policy)],
    ['/log', () => ({ status: 308, headers: { Location: '/log/' }, body: '' })],
    ['/log/', () => logPage(log)],
  ]);
}

/** The policy that the verifier page states itself, so that it has it on disk as well. */
const ownPolicy = /<meta http-equiv="Content-Security-Policy" content="([^"]+)"/;

/** The page about the log as it is now. */
function logPage({ checkpoint, verifierKeys }: PageDependencies['log']): Answer {
  const keys = verifierKeys();
  const [, size] = checkpoint()?.split('\n') ?? [];
  const [origin = ''] = keys[0]?.split('+') ?? [];
  const newest =
    size === undefined
      ? 'No checkpoint has been published yet: the first comes with the first record.'
      : `The newest <a href="checkpoint">checkpoint</a> covers ${escaped(size)} entries.`;
  return plainPage(
    `Evidence log ${escaped(origin)}`,
    `<h1>Evidence log <code>${escaped(origin)}</code></h1>
<p>Every filing and every provenance record of this registry is an entry of a log to which entries can only be added.
The log tells nothing of a work: an entry is a number, a time, and a commitment that only the holder of the record can
open. ${newest}</p>

<h2>Verifier key</h2>
<pre>${escaped(keys.join('\n'))}</pre>
<p>The same <a href="vkey">as text</a>. <strong>A key that you take from the log itself proves nothing against the operator of
the log</strong>, who can give each visitor another one. Get it another way, and compare: in the contract, by letter, from the
site of somebody else who deals with this registry, from a platform that files here. The operator prints it with
<code>artseal evidence vkey</code>. Once you have it, keep it.</p>

<h2>Checking evidence</h2>
<ul>
<li>An evidence bundle, which is the proof of one record: on the <a href="../../verify">verifier page</a>, which computes in your
browser and works from disk as well, or with <code>artseal verify BUNDLE --key KEY</code>. Both take the key that you have;
save the page or take the program from somewhere else than from here, for the same reason.</li>
<li>The log as a whole: <code>artseal log audit URL --key KEY --pin FILE</code>, with the address of this page as URL. Keep the checkpoint
that it writes to FILE: with it you notice later if the log was rewritten.</li>
<li>Anything that reads C2SP tlog-tiles and RFC 6962 trees: <a href="checkpoint"><code>checkpoint</code></a>,
<code>tile/0/000</code>, <code>tile/entries/000</code> beside this page.</li>
</ul>
<p>What all of this proves and what it does not is in <code>docs/evidence.md</code> of Artseal, with the formats, so that you can
write a verifier of your own.</p>`,
  );
}
