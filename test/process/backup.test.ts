import assert from 'node:assert/strict';
import { copyFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { artsealWith } from '../support/artseal.ts';
import { fileArtwork } from '../support/calls.ts';
import { serveIssued } from '../support/issued.ts';
import { startService } from '../support/service.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { typedCall } from '../support/typed-json.ts';
import { runBounded } from '../support/watched-command.ts';

test('a backup of a running service restores to a service with the filings that were answered', {
  timeout: 300_000,
}, async (t) => {
  const service = await serveIssued(t);
  const { dataDir } = service;
  const { json: filed } = await fileArtwork(service, service.platform);
  const target = join(temporaryFolder(t), 'b.tar');
  const { code, stdout, stderr } = await runBounded(t, ['backup', target], { ARTSEAL_DATA_DIR: dataDir });
  assert.deepEqual([code, stderr], [0, '']);
  assert.match(stdout, /sandbox, CNY, taken 2\d{3}-.* schema \d+\n1 filings to AS-/);
  assert.match(stdout, /it contains the master key of the sandbox \(its secrets are encrypted with: main\)/);
  assert.equal(statSync(target).mode & 0o777, 0o600);
  await service.stop('SIGKILL');

  const artseal = artsealWith({});
  assert.match(await artseal.text(`backup verify ${target}`), /^sound: /m);
  const into = join(temporaryFolder(t), 'restored');
  const restored = await artseal.text(`restore ${target} --into ${into}`);
  assert.match(restored, /skipped: AS-\d{4}-000002 to AS-\d{4}-50\d{4}/);
  assert.match(restored, /keys, tokens and suspensions are those of the backup: revoke and suspend again/);
  // No backup has it. Nothing was recorded after this one.
  copyFileSync(join(dataDir, 'log-checkpoint'), join(into, 'log-checkpoint'));
  const again = await startService(t, { dataDir: into });
  const { filingNo } = filed;
  const read = await typedCall(again.internalUrl, await again.token(), 'FilingService/GetFiling', {
    filingNo,
  });
  assert.equal(read.status, 200, JSON.stringify(read.json));
});
