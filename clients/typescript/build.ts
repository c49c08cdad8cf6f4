import { copyFileSync, globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { build as bundle } from 'esbuild';
import { buildFolder, run } from '../../build/client-generator.ts';
import { licenceTexts } from '../../build/licenses.ts';
import { openApiPath, type Part, readOpenApi } from '../../build/openapi.ts';

const folder = import.meta.dirname;
const sources = join(folder, 'src');

/** Generates types and routes from openapi.yaml, builds the npm package in a folder, and resolves with its path. */
export async function build(outputFolder: string): Promise<string> {
  const tool = (name: string, ...words: string[]) =>
    run(join(folder, 'node_modules', '.bin', name), words, { cwd: folder });
  await tool('openapi-typescript', openApiPath, '--output', join(sources, 'openapi.ts'));
  writeFileSync(join(sources, 'routes.ts'), routesModule());

  const staged = buildFolder();
  const declarations = join(staged, 'declarations');
  await tool('tsc', '--emitDeclarationOnly', '--outDir', declarations);
  const packed = join(staged, 'package');
  mkdirSync(packed);
  for (const file of globSync('*.d.ts', { cwd: join(declarations, 'clients', 'typescript', 'src') }))
    copyFileSync(join(declarations, 'clients', 'typescript', 'src', file), join(packed, file));
  const entryPoints = ['index.ts', 'evidence.ts'].map((file) => join(sources, file));
  const { version } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  const { metafile } = await bundle({
    ...{ entryPoints, outdir: packed, bundle: true, metafile: true },
    ...{ format: 'esm', target: 'es2024', charset: 'utf8' },
    define: { KIT_VERSION: JSON.stringify(version) },
  });
  writeFileSync(join(packed, 'LICENSES'), licenceTexts(Object.keys(metafile.inputs), []));
  for (const file of ['package.json', 'README.md']) copyFileSync(join(folder, file), join(packed, file));
  const { stdout } = await run('npm', ['pack', '--silent', '--pack-destination', outputFolder], {
    cwd: packed,
  });
  return join(outputFolder, stdout.trim());
}

/** A module with the method and path of each operation, and whether it returns JSON or text. */
function routesModule(): string {
  const routes = Object.entries<Part>(readOpenApi().paths).flatMap(([path, methods]) =>
    Object.entries<Part>(methods).map(([method, { operationId, responses }]) => {
      const kind = responses[200]?.content?.['application/json'] === undefined ? 'text' : 'json';
      return [operationId, [method.toUpperCase(), path, kind]] as const;
    }),
  );
  return `export const routes = ${JSON.stringify(Object.fromEntries(routes), null, 2)} as const;\n`;
}
