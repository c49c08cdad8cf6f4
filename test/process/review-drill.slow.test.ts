import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { artsealCommand, projectFolder } from '../support/artseal-command.ts';
import { documentText } from '../support/documents.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { runShell, serveWatched } from '../support/watched-command.ts';

/** What each drill prints; the first is the reason for the review, which the page for operators has. */
const expected: Readonly<Record<string, readonly RegExp[]>> = {
  amount: [
    /The order is over 12800000 CNY; the provider says HELD 12800001 CNY, in minor units\./,
    /^ES-\S+ +CLOSED/m,
  ],
  contradiction: [
    /The order is UNPAID; the provider says PAID_OUT\./,
    /^ES-\S+ +RELEASED/m,
    /"event":"TRANSFER"/,
  ],
  declined: [/The provider declines to give back what it holds\./, /provider_refused/, /^ES-\S+ +CLOSED/m],
  silent: [/An operator stopped it\./, /^ES-\S+ +CLOSED/m],
  returned: [
    /The order is RELEASED; the provider says RETURNED\./,
    /"state":"RELEASED".*"payment":"RETURNED"/,
  ],
};

/** How long the drills may take together, in milliseconds. */
const timeoutMs = 120_000;

test('each drill of an order that needs review works', async (t) => {
  const page = documentText('docs/operate/incidents/order-needs-review.md');
  const dataDir = temporaryFolder(t);
  const { publicUrl } = await serveWatched(t, { ARTSEAL_DATA_DIR: dataDir });
  const quoted = artsealCommand([])
    .flat()
    .map((word) => `'${word}'`);
  const artseal = `artseal() { ${quoted.join(' ')} "$@"; }`;
  const script = join(projectFolder, 'deploy', 'order-review-drill.sh');
  const env = { ARTSEAL_DATA_DIR: dataDir, ARTSEAL_URL: publicUrl };
  const run = (drill: string) => runShell(t, `${artseal}\nset -- ${drill}\n. '${script}'`, env, timeoutMs);
  const drills = Object.keys(expected);
  const results = await Promise.all(drills.map(run));
  for (const [index, { code, stdout, stderr }] of results.entries()) {
    const drill = drills[index] ?? '';
    assert.equal(code, 0, `${drill}${stdout}${stderr}`);
    const [reason = /^$/, ...others] = expected[drill] ?? [];
    for (const shown of [reason, ...others]) assert.match(stdout, shown);
    assert.match(page, reason, 'the page has the reason');
  }
});
