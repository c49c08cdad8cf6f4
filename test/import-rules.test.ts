import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { copyFileSync, globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, matchesGlob, posix } from 'node:path';
import { test } from 'node:test';
import { fileScope } from './support/file-scope.ts';
import { temporaryFolder } from './support/temporary-folder.ts';

const root = join(import.meta.dirname, '..');

/** A row of the table in biome.json. */
interface Override {
  readonly includes: readonly string[];
  readonly linter?: { readonly rules?: { readonly style?: { readonly noRestrictedImports?: unknown } } };
}

const { overrides } = JSON.parse(readFileSync(join(root, 'biome.json'), 'utf8')) as {
  readonly overrides: readonly Override[];
};
const rows = overrides
  .filter(({ linter }) => linter?.rules?.style?.noRestrictedImports !== undefined)
  .flatMap(({ includes }) => includes);

/** The folders of src/ that hold modules, such as `src/http/rest`. */
const folders = [...new Set(globSync('src/**/*.ts', { cwd: root }).map((file) => dirname(file)))]
  .filter((folder) => folder !== 'src')
  .sort();

const packages = Object.keys(
  (JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { readonly dependencies: object })
    .dependencies,
);

/** Imports that a sample module of each folder tries: a module of every other folder, and every package. */
const importsOf = (folder: string): readonly string[] => [
  ...folders.filter((other) => other !== folder).map((other) => `${posix.relative(folder, other)}/sample.ts`),
  ...packages,
];

/** Three ways to write an import that `domain` must not contain. */
const ways = `export type { Config } from '../config/config.ts';
import '../config/config.ts';
export const config = import('../config/config.ts');
`;

/** Every way to read the environment. */
const environment = `import process, { env } from 'node:process';
export const all = [env.HOME, process.env.HOME, globalThis.process.env.HOME];
`;

const files: Readonly<Record<string, string>> = {
  ...Object.fromEntries(
    folders.map((folder) => [
      `${folder}/sample.ts`,
      importsOf(folder)
        .map((name) => `export * from '${name}';\n`)
        .join(''),
    ]),
  ),
  'src/domain/ways.ts': ways,
  'src/cli/environment.ts': environment,
  'src/main.ts': environment,
  'src/domain/one.ts': "import type { Two } from './two.ts';\nexport type One = Two;\n",
  'src/domain/two.ts': "import type { One } from './one.ts';\nexport type Two = One;\n",
};

/** As Biome's JSON reporter writes it. */
interface Diagnostic {
  readonly category: string;
  readonly location: { readonly path: string; readonly start: { readonly line: number } };
}

/** Runs the linter on the sample files with the rules of the project. Returns `rule path:line` of each diagnostic. */
function lint(): ReadonlySet<string> {
  const folder = temporaryFolder(fileScope);
  copyFileSync(join(root, 'biome.json'), join(folder, 'biome.json'));
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(join(folder, dirname(path)), { recursive: true });
    writeFileSync(join(folder, path), text);
  }
  const words = ['lint', '--reporter=json', '--max-diagnostics=none', '.'];
  const biome = join(root, 'node_modules', '.bin', 'biome');
  const { stdout, stderr, status } = spawnSync(biome, words, {
    cwd: folder,
    encoding: 'utf8',
    maxBuffer: 2 ** 26,
  });
  assert.equal(status, 1, stderr);
  const { diagnostics } = JSON.parse(stdout) as { diagnostics: readonly Diagnostic[] };
  return new Set(
    diagnostics.map(({ category, location: { path, start } }) => {
      return `${category.split('/').at(-1)} ${path}:${start.line}`;
    }),
  );
}

const found = lint();
const linesOf = (rule: string, path: string) =>
  (files[path] ?? '').split('\n').filter((_line, index) => found.has(`${rule} ${path}:${index + 1}`));

/** What the linter lets the sample module of a folder import. */
function allowedIn(folder: string): readonly string[] {
  const rejected = new Set(linesOf('noRestrictedImports', `${folder}/sample.ts`));
  return importsOf(folder).filter((name) => !rejected.has(`export * from '${name}';`));
}

const roomOf = (folder: string): string => folder.split('/')[1] ?? folder;

/** The rooms that each room may import. */
const arrows = Map.groupBy(
  folders.flatMap((folder) =>
    allowedIn(folder)
      .filter((name) => name.startsWith('.'))
      .map((name) => ({ from: roomOf(folder), to: roomOf(posix.join(folder, dirname(name))) })),
  ),
  ({ from }) => from,
);

test('every folder of src has a row in the table of import rules', () => {
  assert.ok(folders.length > 0);
  assert.deepEqual(
    folders.filter((folder) => !rows.some((row) => matchesGlob(`${folder}/sample.ts`, row))),
    [],
  );
});

test('the table lets no two rooms import each other, directly or through others', () => {
  const reached = (room: string, seen = new Set<string>()): ReadonlySet<string> => {
    for (const { to } of arrows.get(room) ?? []) {
      if (to === room || seen.has(to)) continue;
      seen.add(to);
      reached(to, seen);
    }
    return seen;
  };
  assert.deepEqual(
    [...arrows.keys()].filter((room) => reached(room).has(room)),
    [],
  );
});

/** Packages that only the named folders import. */
const owners: Readonly<Record<string, readonly string[]>> = {
  'better-sqlite3': ['src/payments/simulated', 'src/store/sqlite'],
  'drizzle-orm': ['src/store/engine', 'src/store/handlers', 'src/store/postgres', 'src/store/sqlite'],
  pg: ['src/store/postgres'],
  stripe: ['src/payments/stripe'],
  '@opentelemetry/api': ['src/telemetry/traces'],
  pkijs: ['src/evidence/formats'],
  '@noble/curves': ['src/evidence/formats'],
  '@connectrpc/connect-node': ['src/cli', 'src/client', 'src/http/connect'],
};

test('packages are imported by their owners alone', () => {
  for (const [name, expected] of Object.entries(owners)) {
    const importing = folders.filter((folder) => allowedIn(folder).includes(name));
    assert.deepEqual(importing, expected, name);
  }
});

test('neither API imports the store or an operation, and the verifier imports nothing but the formats', () => {
  for (const folder of ['src/http/rest', 'src/http/connect']) {
    const names = allowedIn(folder).filter((name) => /\/(?:store|services|payments|events)\//.test(name));
    assert.deepEqual(names, [], folder);
  }
  const project = (folder: string) => allowedIn(folder).filter((name) => name.startsWith('.'));
  assert.deepEqual(project('src/evidence/verifier'), ['../formats/sample.ts']);
  assert.deepEqual(project('src/evidence/formats'), []);
});

test('a forbidden import is rejected in whatever way it is written', () => {
  assert.deepEqual(linesOf('noRestrictedImports', 'src/domain/ways.ts'), ways.trimEnd().split('\n'));
});

test('the environment is read in main.ts alone', () => {
  const lines = environment.trimEnd().split('\n');
  assert.deepEqual(linesOf('noProcessEnv', 'src/cli/environment.ts'), lines.slice(1));
  assert.deepEqual(linesOf('noProcessEnv', 'src/main.ts'), []);
});

test('modules that import each other are rejected, also where they import types alone', () => {
  for (const path of ['src/domain/one.ts', 'src/domain/two.ts']) {
    assert.equal(linesOf('noImportCycles', path).length, 1, path);
  }
});
