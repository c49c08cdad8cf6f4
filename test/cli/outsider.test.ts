import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { artsealWith } from '../support/artseal.ts';
import { fileScope } from '../support/file-scope.ts';
import { artwork } from '../support/samples.ts';
import { startService } from '../support/service.ts';
import { send } from '../support/signed-request.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

/** The commands of an outsider, who has no settings, against a registry and its log. */

const outside = temporaryFolder(fileScope);
const service = await startService(fileScope, { env: { ARTSEAL_TLOG_ORIGIN: 'registry.example/log' } });
const platform = await service.platform();
const artseal = artsealWith({});
const logUrl = `${service.publicUrl}/log`;

/** Files an artwork, and gets the evidence of it: the text of the bundle. */
async function fileArtwork(author: string): Promise<string> {
  const body = JSON.stringify({ ...artwork, author });
  const filed = await send(service.publicUrl, platform, { target: '/api/v1/filing', body });
  assert.equal(filed.status, 200);
  const target = `/api/v1/filing/${filed.json.filingNo}/evidence`;
  const { status, text } = await send(service.publicUrl, platform, { method: 'GET', target });
  assert.equal(status, 200, text);
  return text;
}

const first = await fileArtwork('齐白石 🖌 "\\/');
const vkey = (await (await fetch(`${logUrl}/vkey`)).text()).trim();
const pin = join(outside, 'pin');

/** The file of a bundle. */
function kept(name: string, bundle: string): string {
  const file = join(outside, name);
  writeFileSync(file, bundle);
  return file;
}

test('evidence of a registry is verified, and moves the pin as the log grows', async () => {
  const verify = (name: string, bundle: string) =>
    artseal.text(['verify', kept(name, bundle), '--key', vkey, '--pin', pin, '--log', logUrl]);
  assert.match(
    await verify('first', first),
    /^VERIFIED: the filing AS-\d{4}-000001 is in the log, which dates it /,
  );
  assert.match(
    await verify('second', await fileArtwork('Xu Beihong')),
    /^agrees with the pin, and replaces it$/m,
  );
  await verify('first', first);
});

test('the log of a registry is audited, and audited again as it grows', async () => {
  for (const isFirst of [true, false]) {
    const found = await artseal.json(`log audit ${logUrl} --key ${vkey} --pin ${join(outside, 'audited')}`);
    assert.deepEqual([found.verified, found.origin], [true, 'registry.example/log']);
    assert.equal(found.from === 0, isFirst);
    await fileArtwork('Pan Tianshou');
  }
});
