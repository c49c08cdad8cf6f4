import { cpSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { writeKitDocument } from '../../build/client-document.ts';
import { buildFolder, run } from '../../build/client-generator.ts';

const generator = 'github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@v2.8.2';

/** Generates types and operations, packs the Go module in a folder, and resolves with the path of the archive. */
export async function build(outputFolder: string): Promise<string> {
  const staged = buildFolder();
  const module = join(staged, 'artseal-go');
  cpSync(import.meta.dirname, module, { recursive: true });
  await run('go', ['run', generator, '--config', 'oapi-codegen.yaml', writeKitDocument()], { cwd: module });
  await run('go', ['vet', '.'], { cwd: module });
  const version = /version += "(.*)"/.exec(readFileSync(join(module, 'client.go'), 'utf8'))?.[1];
  const archive = join(outputFolder, `artseal-go-${version}.tar.gz`);
  const unused = ['build.ts', 'oapi-codegen.yaml', '*.tmpl'].map((name) => `--exclude=${name}`);
  await run('tar', ['-czf', archive, ...unused, 'artseal-go'], { cwd: staged });
  return archive;
}
