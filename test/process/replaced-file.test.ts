import assert from 'node:assert/strict';
import { renameSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileArtwork } from '../support/calls.ts';
import { eventually } from '../support/eventually.ts';
import { issueInto } from '../support/issued.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { typedCall } from '../support/typed-json.ts';
import { serveWatched } from '../support/watched-command.ts';

/** The longest wait for something that has to happen. */
const timeoutMs = 60_000;

test('a service whose database is moved rejects all calls until it is back', {
  timeout: 300_000,
}, async (t) => {
  const dataDir = join(temporaryFolder(t), 'data');
  const away = `${dataDir}.away`;
  const { platform, token } = await issueInto(dataDir, 1);
  const service = await serveWatched(t, { ARTSEAL_DATA_DIR: dataDir });
  const file = () => fileArtwork(service, platform);
  const list = () => typedCall(service.internalUrl, token, 'FilingService/ListFilings', {});
  const logged = (text: string) => service.logLines(text).length;
  const isLogged = (text: string, times: number) =>
    eventually(`${times} × ${text}`, timeoutMs, () => logged(text) === times);
  assert.match((await file()).json.filingNo, /-000001$/);

  await t.test('moved: a write is rejected at once, a read within seconds', async () => {
    renameSync(dataDir, away);
    const { status, json } = await file();
    assert.deepEqual([status, json.code], [503, 'UNAVAILABLE']);
    assert.equal(json.message.includes(dataDir), false, 'callers see no paths');
    await isLogged('"msg":"the database cannot be used', 1);
    assert.ok(logged(`"fault":"${join(dataDir, 'artseal.db')} is gone"`) === 1, service.stderr());
    assert.equal((await list()).status, 503);
    await isLogged('"msg":"the orders that are due cannot be read', 1);
  });

  await t.test('back: the service continues', async () => {
    renameSync(away, dataDir);
    await isLogged('"msg":"the database can be used again', 1);
    await isLogged('"msg":"the orders that are due are read again', 1);
    assert.equal(logged('"msg":"the orders that are due cannot be read'), 1, 'one line');
    assert.match(service.stderr(), /"reason":"UNAVAILABLE",[^\n]*"why":"[^"]*artseal\.db[^"]* is gone"/);
    assert.equal(logged('"stack"'), 0, service.stderr());
    assert.match((await file()).json.filingNo, /-000002$/);
    assert.equal((await list()).json.filings.length, 2);
  });

  assert.equal(await service.stop(), 0, service.stderr());
});
