import { exampleArtwork } from '../../domain/example.ts';
import { type Reason, reasons } from '../../domain/reason.ts';
import { reasonHelp } from '../../domain/reason-help.ts';
import type { HttpResponse } from './envelope.ts';
import { escaped, plainPage } from './html.ts';

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
