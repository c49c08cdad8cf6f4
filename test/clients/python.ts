import { delimiter, join } from 'node:path';
import { test } from 'node:test';
import { skipUnlessInstalled } from '../support/installed.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { assertSale, run } from './client-program.ts';

const folder = join(import.meta.dirname, 'python');
const document = join(import.meta.dirname, '..', '..', 'openapi.yaml');

const title = 'a Python client generated from openapi.yaml drops nothing and makes its calls';

test(title, { skip: skipUnlessInstalled('python3') }, async (t) => {
  const made = temporaryFolder(t);
  const environment = join(made, 'environment');
  const client = join(made, 'client');
  const path = `${join(environment, 'bin')}${delimiter}${process.env.PATH}`;
  const env = { ...process.env, PATH: path, PYTHONPATH: client };
  const works = (command: string, words: string[]) => run(command, words, { env }).then(Boolean, () => false);

  if (!(await works('python3', ['-m', 'venv', environment]))) {
    return t.skip(skipUnlessInstalled('python3-venv') || 'python3 cannot make a venv');
  }
  // What the project itself is made of comes from npm and Debian alone, so a machine need not reach this index.
  if (!(await works('pip', ['index', 'versions', '--retries=2', '--timeout=10', 'openapi-python-client']))) {
    return t.skip('no Python package index answers');
  }
  await run('pip', ['install', '--requirement', join(folder, 'requirements.txt')], { env });
  const generate = ['generate', '--path', document, '--output-path', client, '--fail-on-warning'];
  await run('openapi-python-client', generate, { env });
  await assertSale(t, 'python', [join(folder, 'calls.py')], env);
});
