import { cpSync, globSync, rmSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { buildFolder, run, writeSuccessDocument } from '../../build/client-generator.ts';

const folder = import.meta.dirname;

/** Generates models and operations from openapi.yaml, builds wheel and sdist in a folder, and resolves with the wheel's path. */
export async function build(outputFolder: string): Promise<string> {
  const environment = join(buildFolder(), 'environment');
  await run('python3', ['-m', 'venv', environment]);
  const env = { ...process.env, PATH: `${join(environment, 'bin')}${delimiter}${process.env.PATH}` };
  await run('pip', ['install', '--requirement', join(folder, 'requirements.txt')], { env });

  const staged = buildFolder();
  const generated = join(staged, 'artseal_client');
  const document = writeSuccessDocument(staged);
  const inputs = ['--path', document, '--config', join(folder, 'generator.yaml')];
  const outputs = ['--custom-template-path', join(folder, 'templates'), '--output-path', generated];
  const words = ['generate', ...inputs, ...outputs, '--meta', 'none', '--fail-on-warning'];
  await run('openapi-python-client', words, { env });
  rmSync(document);
  // The written part takes the place of the generated client and its errors.
  for (const file of ['artseal_client', 'pyproject.toml', 'README.md'])
    cpSync(join(folder, file), join(staged, file), { recursive: true });
  const packed = join(buildFolder(), 'packed');
  await run('python', ['-m', 'build', '--no-isolation', '--outdir', packed, staged], { env });
  cpSync(packed, outputFolder, { recursive: true });
  const [wheel = ''] = globSync('*.whl', { cwd: packed });
  return join(outputFolder, wheel);
}
