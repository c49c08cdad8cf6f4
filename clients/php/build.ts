import { cpSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { generateFromTemplates } from '../../build/client-document.ts';
import { buildFolder, run } from '../../build/client-generator.ts';

const folder = import.meta.dirname;
const { version: artifactVersion } = JSON.parse(readFileSync(join(folder, 'composer.json'), 'utf8'));
const options = {
  artifactVersion,
  invokerPackage: 'Artseal',
  apiPackage: 'Artseal',
  modelPackage: 'Model',
  srcBasePath: 'src',
  variableNamingConvention: 'camelCase',
};

/** Generates types and operations, packs the PHP package in a folder, and resolves with the path of the archive. */
export async function build(outputFolder: string): Promise<string> {
  const staged = buildFolder();
  const packed = join(staged, 'artseal-php');
  await generateFromTemplates('php-nextgen', join(folder, 'templates'), join(staged, 'generated'), options);
  cpSync(join(staged, 'generated', 'src'), join(packed, 'src'), { recursive: true });
  for (const name of ['composer.json', 'README.md', 'src'])
    cpSync(join(folder, name), join(packed, name), { recursive: true });
  const archive = join(outputFolder, `artseal-php-${artifactVersion}.tar.gz`);
  await run('tar', ['-czf', archive, 'artseal-php'], { cwd: staged });
  return archive;
}
