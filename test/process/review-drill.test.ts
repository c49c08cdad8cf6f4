import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { artsealCommand, projectFolder } from '../support/artseal-command.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { runShell, serveWatched } from '../support/watched-command.ts';

/** What each drill of the document shows, in its order; the first of them is the reason that the table has. */
const expected: readonly (readonly RegExp[])[] = [
  [/The order is over 12800000 CNY; the provider says HELD 12800001 CNY\./, /^ES-\S+ +CLOSED/m],
  [/The order is UNPAID; the provider says PAID_OUT\./, /^ES-\S+ +RELEASED/m, /"event":"TRANSFER"/],
  [/The provider declines to give back what it holds\./, /provider_refused/, /^ES-\S+ +CLOSED/m],
  [/An operator stopped it\./, /^ES-\S+ +CLOSED/m],
  [/The order is RELEASED; the provider says RETURNED\./, /"state":"RELEASED".*"payment":"RETURNED"/],
];

/** How long the drills may take together, in milliseconds. */
const timeoutMs = 120_000;

test('the drill of each reason for which an order needs a person works when pasted', async (t) => {
  const document = readFileSync(join(projectFolder, 'docs', 'operations.md'), 'utf8');
  const [, section = ''] = /^### An order needs a person$(.*?)^### /ms.exec(document) ?? [];
  const [shared = '', ...drills] = Array.from(
    section.matchAll(/^```sh\n(.*?)^```$/gms),
    ([, code = '']) => code,
  );
  assert.equal(drills.length, expected.length);

  const dataDir = temporaryFolder(t);
  const { publicUrl } = await serveWatched(t, { ARTSEAL_DATA_DIR: dataDir });
  const quoted = artsealCommand([])
    .flat()
    .map((word) => `'${word}'`);
  const artseal = `artseal() { ${quoted.join(' ')} "$@"; }`;
  const env = { ARTSEAL_DATA_DIR: dataDir, ARTSEAL_URL: publicUrl };
  const run = (drill: string) => runShell(t, [artseal, shared, drill].join('\n'), env, timeoutMs);
  const results = await Promise.all(drills.map(run));
  for (const [place, { code, stdout, stderr }] of results.entries()) {
    assert.equal(code, 0, `${drills[place]}${stdout}${stderr}`);
    const [reason = /^$/, ...others] = expected[place] ?? [];
    for (const shown of [reason, ...others]) assert.match(stdout, shown);
    assert.match(section.split('#### Trying')[0] ?? '', reason, 'the table has the reason');
  }
});
