import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { artsealInShell, executable, projectFolder } from '../support/artseal-command.ts';
import { skipUnlessInstalled } from '../support/installed.ts';
import { serveIssued } from '../support/issued.ts';
import { artwork } from '../support/samples.ts';
import { assertOneLine, runBounded, runShell } from '../support/watched-command.ts';

const signAndPost = `
set -eu
headers=$(${artsealInShell} sign post "$TARGET" --body "$BODY")
value() { printf '%s\\n' "$headers" | sed -n "s/^$1: //p"; }
body_hash=$(openssl dgst -sha256 -r "$BODY" | cut -d' ' -f1)
message="POST$TARGET$body_hash$(value X-Timestamp)$(value X-Nonce)"
expected=$(printf '%s' "$message" | openssl dgst -sha256 -hmac "$ARTSEAL_API_SECRET" -r | cut -d' ' -f1)
test "$expected" = "$(value X-Signature)"
printf '%s\\n' "$headers" |
  curl -sS -H @- -H 'Content-Type: application/json' --data-binary "@$BODY" "$ARTSEAL_URL$TARGET"
`;

const signStandardInput = `
${artsealInShell} sign POST "$TARGET" --body - < "$BODY" |
  curl -sS -H @- -H 'Content-Type: application/json' --data-binary "@$BODY" "$ARTSEAL_URL$TARGET"
`;

test('artseal --version prints the release, and the commit that the executable was built from', async (t) => {
  const { code, stdout, stderr } = await runBounded(t, ['--version'], {});
  assert.deepEqual([code, stderr], [0, '']);
  const { version } = JSON.parse(readFileSync(join(projectFolder, 'package.json'), 'utf8'));
  const commit = executable ? / \([0-9a-f]{40}(-dirty)?\)/.exec(stdout)?.[0] : '';
  assert.equal(stdout, `artseal ${version}${commit}\n`);
});

test('openssl computes the signature of sign, and curl sends its headers', {
  skip: skipUnlessInstalled('openssl', 'curl'),
  timeout: 300_000,
}, async (t) => {
  const service = await serveIssued(t);
  const { dataDir, platform } = service;
  const bodyFile = join(dataDir, 'body.json');
  writeFileSync(bodyFile, JSON.stringify({ ...artwork, author: '齐白石 "Qi Baishi"\\' }));
  const env = {
    ARTSEAL_DATA_DIR: join(dataDir, 'none'),
    ARTSEAL_API_KEY: platform.apiKey,
    ARTSEAL_API_SECRET: platform.apiSecret,
    ARTSEAL_URL: service.publicUrl,
    TARGET: '/api/v1/filing',
    BODY: bodyFile,
  };
  const posted = await runShell(t, signAndPost, env);
  assert.equal(posted.code, 0, posted.stderr);
  assert.match(JSON.parse(posted.stdout).filingNo, /-000001$/);
  const piped = await runShell(t, signStandardInput, env);
  assert.match(JSON.parse(piped.stdout).filingNo, /-000002$/, piped.stderr);
  assert.equal(await service.stop(), 0);
  assertOneLine(await runBounded(t, ['demo'], env), 1, /no response from http:/);
});
