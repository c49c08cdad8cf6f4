import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { test } from 'node:test';

const root = join(import.meta.dirname, '..');

/** A module of src/, by its path from the root of the project. */
interface Module {
  readonly path: string;
  readonly text: string;
  /** What it imports: paths from the root for files of the project, names for packages. */
  readonly imports: readonly string[];
}

const importPattern =
  /^\s*(?:import|export)\b[^;'"]*?\bfrom\s*['"]([^'"]+)['"]|\bimport\s*\(?\s*['"]([^'"]+)['"]/gm;

function readModule(path: string): Module {
  const text = readFileSync(join(root, path), 'utf8');
  const imports = Array.from(text.matchAll(importPattern), ([, from, bare]) => from ?? bare ?? '');
  const resolved = imports.map((name) =>
    name.startsWith('.') ? relative(root, join(root, dirname(path), name)) : name,
  );
  return { path, text, imports: resolved };
}

const modules = globSync('src/**/*.ts', { cwd: root }).sort().map(readModule);
const isOfProject = (name: string) => name.startsWith('src/') || name.startsWith('gen/');

/** What a part of src/ may import of the project; entries that end with / are folders. */
interface Rule {
  readonly part: string;
  readonly may: readonly string[];
  readonly except?: readonly string[];
}

const domain = 'src/domain/';
const ports = ['src/store/store.ts', 'src/payment/institution.ts'];
const doors = [
  'gen/',
  'src/access/',
  'src/json/',
  'src/rpc/dispatcher.ts',
  'src/rpc/errors.ts',
  'src/observe/',
];
const words = ['src/domain/reason.ts', 'src/domain/violation.ts'];

const rules: readonly Rule[] = [
  { part: domain, may: [domain] },
  { part: 'src/store/store.ts', may: [domain] },
  { part: 'src/payment/institution.ts', may: [domain] },
  { part: 'src/store/sqlite/', may: ['src/store/sqlite/', 'src/store/store.ts', domain] },
  { part: 'src/payment/simulated/', may: ['src/payment/simulated/', 'src/payment/institution.ts', domain] },
  { part: 'src/payment/stripe/', may: ['src/payment/stripe/', 'src/payment/institution.ts', domain] },
  { part: 'src/settlement/', may: ['src/settlement/', domain, ...ports] },
  { part: 'src/access/', may: ['src/access/', domain, 'src/store/store.ts'] },
  {
    part: 'src/rpc/',
    may: ['src/rpc/', 'gen/', domain, ...ports, 'src/settlement/settlement.ts', 'src/access/'],
  },
  { part: 'src/json/', may: ['src/json/', 'src/domain/reason.ts'] },
  { part: 'src/rest/', may: ['src/rest/', ...doors, ...words] },
  { part: 'src/internal/', may: ['src/internal/', ...doors, ...words] },
  { part: 'src/observe/', may: ['src/observe/', ...words] },
  { part: 'src/client/', may: ['src/client/', 'gen/', 'src/access/'] },
];

const isIn = (path: string, part: string) => (part.endsWith('/') ? path.startsWith(part) : path === part);

for (const { part, may } of rules) {
  test(`${part} imports of the project only ${may.filter((allowed) => allowed !== part).join(', ') || 'itself'}`, () => {
    const inside = modules.filter(({ path }) => isIn(path, part));
    assert.ok(inside.length > 0, `${part} is there`);
    const broken = inside.flatMap(({ path, imports }) =>
      imports
        .filter((name) => isOfProject(name) && !may.some((allowed) => isIn(name, allowed)))
        .map((name) => `${path} imports ${name}`),
    );
    assert.deepEqual(broken, []);
  });
}

test('every import of the project names a file that is there', () => {
  const known = new Set([...modules.map(({ path }) => path), ...globSync('gen/**/*.ts', { cwd: root })]);
  const dangling = modules.flatMap(({ path, imports }) =>
    imports.filter((name) => isOfProject(name) && !known.has(name)).map((name) => `${path} imports ${name}`),
  );
  assert.deepEqual(dangling, []);
});

const engines: Record<string, string> = {
  'better-sqlite3': 'src/store/sqlite/ src/payment/simulated/',
  stripe: 'src/payment/stripe/',
  'drizzle-orm': 'src/store/sqlite/',
  '@connectrpc/connect-node': 'src/internal/ src/client/',
};

for (const [name, parts] of Object.entries(engines)) {
  test(`${name} is known to ${parts} alone`, () => {
    const others = modules.filter(
      ({ path, imports }) =>
        imports.some((imported) => imported === name || imported.startsWith(`${name}/`)) &&
        !parts.split(' ').some((part) => isIn(path, part)),
    );
    assert.deepEqual(
      others.map(({ path }) => path),
      [],
    );
  });
}

test('the domain, the ports and access need no package and neither sockets nor files', () => {
  const pure = modules.filter(({ path }) =>
    [domain, 'src/access/', ...ports].some((part) => isIn(path, part)),
  );
  const impure = pure.flatMap(({ path, imports }) =>
    imports
      .filter((name) => !isOfProject(name) && name !== 'node:crypto')
      .map((name) => `${path} imports ${name}`),
  );
  assert.deepEqual(impure, []);
});

test('only the start of the command reads the environment of the process', () => {
  const readers = modules.filter(({ text }) =>
    /\bprocess\s*(\.|\[\s*['"])\s*env\b|\benv\b.*from 'node:process'/.test(text),
  );
  const allowed = ['src/config.ts', 'src/main.ts'];
  assert.deepEqual(
    readers.map(({ path }) => path).filter((path) => !allowed.includes(path)),
    [],
  );
});

test('time comes from a clock that is passed in, not from the machine', () => {
  const passedIn = [
    'access/',
    'domain/',
    'payment/',
    'rpc/',
    'settlement/',
    'store/',
    'rest/signed-call.ts',
  ].map((part) => `src/${part}`);
  const readers = modules.filter(
    ({ path, text }) =>
      passedIn.some((part) => isIn(path, part)) &&
      /\bDate\.now\(|\bnew Date\(\)|performance\.now\(|Temporal\.Now\b/.test(text),
  );
  assert.deepEqual(
    readers.map(({ path }) => path),
    [],
  );
});

test('no module imports itself by way of others', () => {
  const byPath = new Map(modules.map((module) => [module.path, module]));
  const settled = new Set<string>();
  const circles: string[] = [];
  const visit = (path: string, trail: readonly string[]): void => {
    if (trail.includes(path)) circles.push([...trail.slice(trail.indexOf(path)), path].join(' > '));
    if (trail.includes(path) || settled.has(path)) return;
    for (const name of byPath.get(path)?.imports ?? []) if (byPath.has(name)) visit(name, [...trail, path]);
    settled.add(path);
  };
  for (const { path } of modules) visit(path, []);
  assert.deepEqual(circles, []);
});

const exported =
  /^export (?:default )?(?:abstract |async |declare )*(?:function\*?|class|interface|type|const|let|enum) (\w+)/;

/** The exports of a module that no doc comment stands before. */
function undocumented({ path, text }: Module): string[] {
  const lines = text.split('\n');
  return lines.flatMap((line, place) => {
    const name = exported.exec(line)?.[1];
    const before = lines[place - 1] ?? '';
    return name === undefined || /\*\/\s*$/.test(before) ? [] : [`${path}: ${name}`];
  });
}

test('every export says what it promises in a doc comment', () => {
  assert.deepEqual(modules.flatMap(undocumented), []);
});
