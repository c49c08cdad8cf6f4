import assert from 'node:assert/strict';
import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { runHere } from './support/artseal.ts';
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
