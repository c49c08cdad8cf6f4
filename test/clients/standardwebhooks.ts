import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { verifyWebhook } from '../../clients/typescript/src/webhook.ts';
import { codeBlocks, documentText } from '../support/documents.ts';
import { skipUnlessInstalled } from '../support/installed.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { publishedCases, webhookCases } from '../support/webhook-cases.ts';
import { pythonEnvironment } from './python-environment.ts';
import { answersOf, expectedOf } from './webhook-program.ts';

const folder = join(import.meta.dirname, 'webhooks');
const title =
  'the PyPI package standardwebhooks verifies what is sent, and signs what @artseal/client accepts';

test(title, { skip: skipUnlessInstalled('python3') }, async (t) => {
  const env = await pythonEnvironment(t, join(folder, 'requirements.txt'), 'standardwebhooks');
  if (env === undefined) return;
  const [verifying = ''] = codeBlocks(
    documentText('docs/platforms/webhooks.md', 'Receiving webhooks'),
    'python',
  );
  const cwd = temporaryFolder(t);
  writeFileSync(join(cwd, 'receiver.py'), verifying);
  const program = join(folder, 'published.py');

  const cases = webhookCases(Math.floor(Date.now() / 1000));
  assert.deepEqual(await answersOf('python', [program], cases, { env, cwd }), expectedOf(cases));

  const genuine = [...publishedCases, ...cases.filter(({ apiError }) => apiError === undefined)];
  const signed = await answersOf('python', [program, 'sign'], genuine, { env, cwd });
  for (const [index, { name, headers, nowS, ...webhook }] of genuine.entries()) {
    const signature = signed[index]?.[1] ?? '';
    const sent = { ...headers, 'webhook-timestamp': String(nowS), 'webhook-signature': signature };
    const event = await verifyWebhook({ ...webhook, headers: sent, nowMs: nowS * 1000 });
    assert.deepEqual(event, JSON.parse(webhook.body), name);
  }
});
