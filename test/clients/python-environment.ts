import { delimiter, join } from 'node:path';
import type { TestContext } from 'node:test';
import { run } from '../../build/client-generator.ts';
import { skipUnlessInstalled } from '../support/installed.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

/**
 * The environment of programs that use packages of the Python package index. Undefined, with the test skipped, if there is no
 * venv or no index. `requirements` is the file that names the packages; `example` is one of them.
 */
export async function pythonEnvironment(
  t: TestContext,
  requirements: string,
  example: string,
): Promise<NodeJS.ProcessEnv | undefined> {
  const environment = join(temporaryFolder(t), 'environment');
  const env = { ...process.env, PATH: `${join(environment, 'bin')}${delimiter}${process.env.PATH}` };
  const works = (command: string, words: string[]) => run(command, words, { env }).then(Boolean, () => false);
  if (!(await works('python3', ['-m', 'venv', environment]))) {
    t.skip(skipUnlessInstalled('python3-venv') || 'python3 cannot make a venv');
    return undefined;
  }
  // The project itself needs only npm and Debian, so a machine may not reach this index.
  if (!(await works('pip', ['index', 'versions', '--retries=2', '--timeout=10', example]))) {
    t.skip('no Python package index answers');
    return undefined;
  }
  await run('pip', ['install', '--requirement', requirements], { env });
  return env;
}
