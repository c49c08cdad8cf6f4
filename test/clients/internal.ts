import assert from 'node:assert/strict';
import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { stripVTControlCharacters } from 'node:util';
import { run } from '../../build/client-generator.ts';
import { projectFolder } from '../support/artseal-command.ts';
import { fileArtwork } from '../support/calls.ts';
import { codeBlocks, documentText } from '../support/documents.ts';
import { skipUnlessInstalled } from '../support/installed.ts';
import { startService } from '../support/service.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

// The programs in docs/internal.md that call the internal API.

/** A language of the document: its heading, what must be installed, the language and path of its files. */
interface Example {
  readonly heading: string;
  readonly needs: readonly string[];
  readonly files: Readonly<Record<string, string>>;
  /** The command, unless a block has it. */
  readonly command?: string;
}

const examples: readonly Example[] = [
  { heading: 'Go', needs: ['go', 'protoc'], files: { go: 'main.go' } },
  { heading: 'Python', needs: ['python3'], files: { python: 'list.py' } },
  { heading: 'Java', needs: ['mvn', 'javac'], files: { java: 'src/main/java/Example.java', xml: 'pom.xml' } },
  {
    heading: 'PHP, and without generated code',
    needs: ['php'],
    files: { php: 'list.php' },
    command: 'php list.php',
  },
];

/** Writes the files of an example into a new folder, beside the archive of the protos. Resolves with the folder. */
async function writeExample(t: TestContext, section: string, { files }: Example, address: string) {
  const folder = temporaryFolder(t);
  for (const [language, path] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    const [code = assert.fail(language)] = codeBlocks(section, language);
    writeFileSync(join(folder, path), code.replace('127.0.0.1:8081', address));
  }
  const { stdout } = await run(process.execPath, ['build/protos.ts'], { cwd: projectFolder });
  const archive = join(projectFolder, stdout.trim());
  copyFileSync(archive, join(folder, basename(archive)));
  return folder;
}

for (const example of examples) {
  const { heading, needs, command } = example;
  test(`${heading}: the example of docs/internal.md works`, {
    skip: skipUnlessInstalled(...needs),
  }, async (t) => {
    const service = await startService(t);
    await fileArtwork(service, await service.platform());
    const sections = documentText('docs/internal.md').split(/^### /m);
    const section = sections.find((text) => text.startsWith(`${heading}\n`)) ?? assert.fail(heading);
    const cwd = await writeExample(t, section, example, new URL(service.internalUrl).host);
    const code = command ?? codeBlocks(section, 'sh')[0] ?? assert.fail(heading);
    // Go makes the files that it downloads read-only, so that the folder could not be removed.
    const goOptions = { GOPATH: temporaryFolder(t), GOFLAGS: '-modcacherw' };
    const env = { ...process.env, ...goOptions, TOKEN: await service.token() };
    const { stdout } = await run('sh', ['-ec', code], { cwd, env });
    assert.equal(stripVTControlCharacters(stdout), '1\n');
  });
}
