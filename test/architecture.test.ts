import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { providers } from '../src/config/payment-providers.ts';

const root = join(import.meta.dirname, '..');

/** A module of src/, by its path from the root of the project. */
interface Module {
  readonly path: string;
  readonly text: string;
}

const modules: readonly Module[] = globSync('src/**/*.ts', { cwd: root })
  .sort()
  .map((path) => ({ path, text: readFileSync(join(root, path), 'utf8') }));

/** The modules that may not read the clock of the machine; entries that end with / are folders. */
const withoutClock = [
  ...['src/api/', 'src/domain/', 'src/health/', 'src/keys/', 'src/payments/', 'src/store/'],
  ...['src/events/webhooks/', 'src/http/rest/routes.ts'],
];

test('time comes from a clock that is passed in', () => {
  const readers = modules.filter(
    ({ path, text }) =>
      withoutClock.some((part) => path.startsWith(part)) &&
      /\bDate\.now\(|\bnew Date\(\)|performance\.now\(|Temporal\.Now\b/.test(text),
  );
  assert.deepEqual(
    readers.map(({ path }) => path),
    [],
  );
});

const exported =
  /^export (?:default )?(?:abstract |async |declare )*(?:function\*?|class|interface|type|const|let|enum) (\w+)/;

/** The exports without a doc comment, except `createThing` beside the type Thing, and `ThingDependencies`. */
function undocumented({ path, text }: Module): string[] {
  const lines = text.split('\n');
  const names = lines.map((line) => exported.exec(line)?.[1]);
  const makesWhatIsHere = (name: string) =>
    name.startsWith('create') && names.includes(name.slice('create'.length));
  return names.flatMap((name, place) => {
    const isDocumented = /\*\/\s*$/.test(lines[place - 1] ?? '');
    const isObvious = name?.endsWith('Dependencies') || (name !== undefined && makesWhatIsHere(name));
    return name === undefined || isDocumented || isObvious ? [] : [`${path}: ${name}`];
  });
}

test('each export has a doc comment, its own or that of the type it creates', () => {
  assert.ok(modules.length > 0);
  assert.deepEqual(modules.flatMap(undocumented), []);
});

test('no provider that moves money is named outside its folder and the list of providers', () => {
  const names = providers.filter(({ movesMoney }) => movesMoney).map(({ name }) => name);
  assert.ok(names.length > 0);
  const naming = modules.flatMap(({ path, text }) =>
    names
      .filter(
        (name) => !path.startsWith(`src/payments/${name}/`) && path !== 'src/config/payment-providers.ts',
      )
      .filter((name) => text.toLowerCase().includes(name))
      .map((name) => `${path}: ${name}`),
  );
  assert.deepEqual(naming, []);
});

test('one module knows where the files of the program are, since the executable contains them', () => {
  const knowing = modules.filter(({ text }) => /\bimport\.meta\b/.test(text)).map(({ path }) => path);
  // The executable does not contain the others.
  assert.deepEqual(knowing, [
    'src/launcher.ts',
    'src/packaging/module-resolution.ts',
    'src/packaging/packaged-files.ts',
    'src/packaging/startup.ts',
  ]);
});

test('npm run test:root runs each test that may need root', () => {
  const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  const named: string[] = scripts['test:root'].split(' ').filter((word: string) => word.endsWith('.test.ts'));
  const needing = globSync('test/**/*.test.ts', { cwd: root, exclude: ['**/node_modules/**'] }).filter(
    (file) => /from '.*\/(?:namespaces|machine)\.ts'/.test(readFileSync(join(root, file), 'utf8')),
  );
  assert.deepEqual(globSync(named, { cwd: root }).sort(), needing.sort());
});
