import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { artsealWith } from '../support/artseal.ts';
import { fileArtwork, getEvidence } from '../support/calls.ts';
import { artwork } from '../support/samples.ts';
import { startService } from '../support/service.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

test('an outsider without settings verifies evidence of a registry and audits its log, as both grow', async (t) => {
  const folder = temporaryFolder(t);
  const service = await startService(t, { env: { ARTSEAL_TLOG_ORIGIN: 'registry.example/log' } });
  const platform = await service.platform();
  const logUrl = `${service.publicUrl}/log`;
  const artseal = artsealWith({});
  const bundle = join(folder, 'bundle');
  for (const author of ['齐白石 🖌 "\\/', 'Xu Beihong']) {
    const body = JSON.stringify({ ...artwork, author });
    const filed = await fileArtwork(service, platform, { body });
    writeFileSync(bundle, (await getEvidence(service, platform, filed.json.filingNo)).text);
    const key = ['--key', (await (await fetch(`${logUrl}/vkey`)).text()).trim()];
    const pin = ['--pin', join(folder, 'pin')];
    const verified = await artseal.text(['verify', bundle, ...key, ...pin, '--log', logUrl]);
    assert.match(verified, /^VERIFIED: the filing AS-\d{4}-00000\d is in the log, which dates it /);
    assert.match(
      verified,
      author === 'Xu Beihong' ? /^agrees with the pin, and replaces it$/m : /^pinned as/m,
    );
    const audited = await artseal.json(['log', 'audit', logUrl, ...key, '--pin', join(folder, 'audited')]);
    assert.deepEqual([audited.verified, audited.origin], [true, 'registry.example/log']);
    assert.equal(audited.from === 0, author !== 'Xu Beihong');
  }
});
