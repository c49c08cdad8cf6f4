import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { type TestContext, test } from 'node:test';
import { run } from '../../build/client-generator.ts';
import { exampleArtwork } from '../../src/domain/example.ts';
import { codeBlocks, documentText } from '../support/documents.ts';
import { skipUnlessInstalled } from '../support/installed.ts';
import { startService } from '../support/service.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const guide = documentText('docs/platforms/signing.md');
const [variables = '', functions = '', firstCall = ''] = codeBlocks(guide, 'sh');

/** The commands that the guide gives for its programs, and what must be installed. */
const programs = [
  { language: 'js', command: 'node call.mjs', needs: [] },
  { language: 'python', command: 'python3 call.py', needs: ['python3'] },
  { language: 'go', command: 'go run call.go', needs: ['go'] },
  { language: 'java', command: 'java Call.java', needs: ['java', 'javac'] },
  { language: 'php', command: 'php call.php', needs: ['php'] },
];

for (const { language, command, needs } of programs) {
  test(`the program of the guide files a work: ${command}`, {
    skip: skipUnlessInstalled(...needs),
  }, async (t) => {
    assert.ok(guide.includes(`\n\`${command}\``));
    const [program = '', file = ''] = command.split(/ (?=[^ ]*$)/);
    const [code = ''] = codeBlocks(guide, language);
    const cwd = temporaryFolder(t);
    writeFileSync(join(cwd, file), code);
    const { publicUrl, platform } = await startService(t);
    const { apiKey, apiSecret } = await platform();
    const responses = async (secret: string) => {
      const access = { ARTSEAL_URL: publicUrl, ARTSEAL_API_KEY: apiKey, ARTSEAL_API_SECRET: secret };
      const env = { ...process.env, GOPROXY: 'off', GOTOOLCHAIN: 'local', ...access };
      const [name = '', ...words] = program.replace(/^node$/, process.execPath).split(' ');
      const { stdout } = await run(name, [...words, file], { cwd, env });
      return stdout
        .trim()
        .split(/\r?\n/)
        .map((line) => JSON.parse(line));
    };
    const [receipt, { filings }] = await responses(apiSecret);
    const { author, era, size, material, condition, price } = filings[0];
    assert.deepEqual({ author, era, size, material, condition, price }, exampleArtwork);
    assert.equal(filings[0].filingNo, receipt.filingNo);
    const rejections = await responses(`${apiSecret}0`);
    assert.deepEqual(
      rejections.map(({ code: reason }) => reason),
      ['SIGNATURE_INVALID', 'SIGNATURE_INVALID'],
    );
  });
}

/** Types a script into an interactive shell without a terminal. Resolves with its output. */
async function typed(t: TestContext, shell: string, script: string): Promise<string> {
  const env = { ...process.env, HOME: temporaryFolder(t) };
  // Of its own session, so that it cannot take the terminal of the test.
  const child = spawn(shell, ['-is'], { env, detached: true, stdio: 'pipe' });
  child.stdin.end(script);
  const [output, prompts] = await Promise.all([text(child.stdout), text(child.stderr)]);
  assert.doesNotMatch(prompts, /not found|no match/);
  return output;
}

for (const shell of ['sh', 'bash', 'zsh']) {
  const needs = [shell, 'openssl', 'curl'];
  test(`the shell function of the guide files a work in ${shell}`, {
    skip: skipUnlessInstalled(...needs),
  }, async (t) => {
    const { publicUrl, platform } = await startService(t);
    const { apiKey, apiSecret } = await platform();
    const access = variables
      .replace('http://127.0.0.1:8080', publicUrl)
      .replace('ak_sandbox_...', apiKey)
      .replace('sk_sandbox_...', apiSecret);
    const list = "call GET '/api/v1/filing?pageSize=1'\n";
    const output = await typed(t, shell, `${access}${functions}${firstCall}echo\n${list}`);
    const [receipt, { filings }] = output.split('\n').map((line) => JSON.parse(line));
    assert.equal(filings[0].filingNo, receipt.filingNo);
  });
}
