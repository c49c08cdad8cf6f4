import assert from 'node:assert/strict';
import { test } from 'node:test';
import { artsealInShell } from '../support/artseal-command.ts';
import { skipUnlessInstalled } from '../support/installed.ts';
import { runShell } from '../support/watched-command.ts';

const serve = `${artsealInShell} serve`;
const onTerminal = `script --quiet --flush --return --command "${serve}" /dev/null`;
const text = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z INFO {2}starting version=\S+/m;
const json = /^\{"level":30,"time":"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z",.*"msg":"starting"\}\r?$/m;

for (const { where, script, format, line } of [
  { where: 'in a file', script: serve, format: 'auto', line: json },
  { where: 'in a file', script: serve, format: 'text', line: text },
  { where: 'on a terminal', script: onTerminal, format: 'auto', line: text },
  { where: 'on a terminal', script: onTerminal, format: 'json', line: json },
])
  test(`the log ${where} with ARTSEAL_LOG_FORMAT=${format}`, {
    skip: script === onTerminal && skipUnlessInstalled('script'),
  }, async (t) => {
    // It logs that it starts, and ends at once.
    const env = { ARTSEAL_DATA_DIR: '/proc', ARTSEAL_LOG_FORMAT: format };
    const { stdout, stderr } = await runShell(t, script, env);
    assert.match(stdout + stderr, line);
  });
