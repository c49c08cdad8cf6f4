import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { scalarVersion } from '../src/http/rest/docs/reference.ts';
import { scalarLicencesFile } from '../src/packaging/packaged-files.ts';
import { licenceTexts } from './licenses.ts';
import { projectFolder } from './project.ts';

// Writes the licence texts of the packages in Scalar's script, which its source map names. It downloads them, so it runs only
// after an upgrade of Scalar. The argument is the version of @scalar/api-reference.

const [version = scalarVersion] = process.argv.slice(2);
const folder = mkdtempSync(join(tmpdir(), 'scalar-'));
const run = (command: string, ...words: string[]) =>
  execFileSync(command, words, { cwd: folder, encoding: 'utf8' });

const archive = run('npm', 'pack', '--silent', `@scalar/api-reference@${version}`).trim();
run('tar', '-xzf', archive);
const map = readFileSync(join(folder, 'package', 'dist', 'browser', 'standalone.js.map'), 'utf8');
/** Matches a file in pnpm's store: …/.pnpm/@scope+name@1.2.3_peers/node_modules/@scope/name/… */
const stored = /\/\.pnpm\/@?[^@/]+@([^_/(]+)[^/]*\/node_modules\/((?:@[^/]+\/)?[^/]+)\//;
const versions = new Map<string, string>();
for (const source of JSON.parse(map).sources) {
  const [, version = '', name = ''] = stored.exec(source) ?? [];
  if (name !== '') versions.set(name, version);
}
run(
  'npm',
  ...['install', '--silent', '--ignore-scripts', '--force'],
  ...Array.from(versions, (entry) => entry.join('@')),
);
const modules = join(folder, 'node_modules');
const folders = Array.from(versions.keys(), (name) => join(modules, name)).sort();
const scalar = join(projectFolder, 'node_modules', '@scalar', 'fastify-api-reference');
const texts = licenceTexts([], [scalar, ...folders]);
const [mit = ''] = /^Permission is hereby granted.*?^SOFTWARE\.$/ms.exec(texts) ?? [];
const [apache = ''] =
  /^Licensed under the Apache License.*?limitations under the License\.$/ms.exec(texts) ?? [];
// A few packages have no text of their own.
const complete = texts.replaceAll(
  /^(\S+) \S+: (MIT|Apache-2\.0)\n(?=\n-{80}$)/gm,
  (heading, name, licence) => {
    return `${heading}\nCopyright the authors of ${name}\n\n${licence === 'MIT' ? mit : apache}\n`;
  },
);
writeFileSync(join(projectFolder, scalarLicencesFile), complete);
rmSync(folder, { recursive: true });
