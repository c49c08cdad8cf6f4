import { copyFileSync, cpSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { generateFromTemplates } from '../../build/client-document.ts';
import { buildFolder, run } from '../../build/client-generator.ts';

const folder = import.meta.dirname;
const pom = readFileSync(join(folder, 'pom.xml'), 'utf8');
const artifactVersion = /<version>(.*)<\/version>/.exec(pom)?.[1] ?? '';
const jar = `artseal-client-${artifactVersion}.jar`;
const invokerPackage = 'dev.artseal.client';
const packages = { invokerPackage, apiPackage: invokerPackage, modelPackage: `${invokerPackage}.model` };

/** Generates types and operations, builds the jar in a folder, and resolves with its path. */
export async function build(outputFolder: string): Promise<string> {
  const staged = buildFolder();
  const options = { ...packages, artifactVersion, openApiNullable: 'false' };
  await generateFromTemplates('java', join(folder, 'templates'), staged, options, '--library', 'native');
  for (const name of ['pom.xml', 'src']) cpSync(join(folder, name), join(staged, name), { recursive: true });
  await run('mvn', ['--quiet', '--batch-mode', 'package'], { cwd: staged });
  copyFileSync(join(staged, 'target', jar), join(outputFolder, jar));
  return join(outputFolder, jar);
}
