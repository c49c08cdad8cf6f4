import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { run } from '../../build/client-generator.ts';
import { skipUnlessInstalled } from '../support/installed.ts';
import { openApi } from '../support/openapi.ts';
import { startService } from '../support/service.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { pythonEnvironment } from './python-environment.ts';

const folder = join(import.meta.dirname, 'schemathesis');
const document = join(import.meta.dirname, '..', '..', 'openapi.yaml');

const title = 'schemathesis finds no answer that openapi.yaml does not document, on any route';

test(title, { skip: skipUnlessInstalled('python3') }, async (t) => {
  const environment = await pythonEnvironment(t, join(folder, 'requirements.txt'), 'schemathesis');
  if (environment === undefined) return;
  const { publicUrl, platform } = await startService(t, { env: { ARTSEAL_WEBHOOK_NETWORKS: '127.0.0.1' } });
  const { apiKey, apiSecret } = await platform();
  const access = { ARTSEAL_API_KEY: apiKey, ARTSEAL_API_SECRET: apiSecret };
  const env = { ...environment, ...access, SCHEMATHESIS_HOOKS: join(folder, 'hooks.py') };
  const bounds = ['--max-examples', '20', '--seed', '1', '--continue-on-failure'];
  // A valid request may be rejected for other reasons than its schema, such as its page token.
  const checks = ['--exclude-checks', 'positive_data_acceptance,negative_data_rejection'];
  const running = run('schemathesis', ['run', document, '--url', publicUrl, ...bounds, ...checks], {
    env,
    cwd: temporaryFolder(t),
  });
  const { stdout } = await running.catch((error) => assert.fail(error.stdout ?? error));
  const operations = Object.values(openApi.paths).flatMap(Object.values).length;
  assert.match(stdout, new RegExp(`Tested: +${operations}\\b`));
});
