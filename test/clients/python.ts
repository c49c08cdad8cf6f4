import { join } from 'node:path';
import { test } from 'node:test';
import { skipUnlessInstalled } from '../support/installed.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { assertSale, run } from './client-program.ts';
import { pythonEnvironment } from './python-environment.ts';

const folder = join(import.meta.dirname, 'python');
const document = join(import.meta.dirname, '..', '..', 'openapi.yaml');

const title = 'a Python client generated from openapi.yaml drops nothing and makes its calls';

test(title, { skip: skipUnlessInstalled('python3') }, async (t) => {
  const client = join(temporaryFolder(t), 'client');
  const requirements = join(folder, 'requirements.txt');
  const environment = await pythonEnvironment(t, requirements, 'openapi-python-client');
  if (environment === undefined) return;
  const env = { ...environment, PYTHONPATH: client };
  const generate = ['generate', '--path', document, '--output-path', client, '--fail-on-warning'];
  await run('openapi-python-client', generate, { env });
  await assertSale(t, 'python', [join(folder, 'calls.py')], env);
});
