import assert from 'node:assert/strict';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { artsealWith } from '../support/artseal.ts';
import { fileArtwork } from '../support/calls.ts';
import { commandsOver, connections, testEveryConnection } from '../support/connections.ts';
import { artwork } from '../support/samples.ts';
import { startService } from '../support/service.ts';
import { send } from '../support/signed-request.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

/** A folder that was served, with a filing and a link to its evidence. */
async function servedFolder(t: TestContext) {
  const service = await startService(t);
  const platform = await service.platform();
  const { filingNo } = (await fileArtwork(service, platform)).json;
  const target = `/api/v1/filing/${filingNo}/evidence/links`;
  const { json } = await send(service.publicUrl, platform, { target, body: '{}' });
  const [vkey] = service.publication.verifierKeys();
  await service.close();
  return { dataDir: service.dataDir, filingNo, linkId: json.linkId as string, vkey };
}

for (const connection of connections) {
  test(`over ${connection}: the keys of the evidence log are printed and rotated`, async (t) => {
    const { dataDir, vkey } = await servedFolder(t);
    const artseal = await commandsOver(t, connection, { dataDir });
    assert.deepEqual(await artseal.lines('evidence vkey'), [vkey]);
    const next = await artseal.json('evidence rotate-key --signs-in 7d --overlap 1d --reason yearly');
    const lengthMs = Date.parse(next.othersEndAt) - Date.parse(next.signsFrom);
    assert.equal(lengthMs, 86_400_000);
    const listed = await artseal.list('evidence vkey');
    assert.deepEqual(
      listed.map((key) => [key.vkey, key.endsAt]),
      [
        [vkey, next.othersEndAt],
        [next.vkey, null],
      ],
    );
    assert.equal((await artseal.lines('evidence vkey'))[1], `${next.vkey} signs from ${next.signsFrom}`);
    const [alone, sign, announce] = await artseal.lines('evidence rotate-key --overlap 0s');
    assert.match(sign ?? '', /^The earlier keys sign until /);
    assert.match(announce ?? '', /^Give the new verifier key to everybody/);
    assert.deepEqual(await artseal.lines('evidence vkey'), [alone]);
    const entries = (await artseal.list('audit-log')).slice(0, 2);
    assert.deepEqual(
      entries.map(({ action, subject, reason }) => [action, subject, reason]),
      [
        ['evidence rotate-key', alone, undefined],
        ['evidence rotate-key', next.vkey, 'yearly'],
      ],
    );
  });

  test(`over ${connection}: links to evidence are listed and revoked`, async (t) => {
    const { dataDir, filingNo, linkId } = await servedFolder(t);
    const artseal = await commandsOver(t, connection, { dataDir });
    const [link, ...more] = await artseal.list(`evidence links ${filingNo}`);
    assert.deepEqual(
      [link.linkId, link.filingNo, link.sequence, link.revokedAt, more],
      [linkId, filingNo, 1, null, []],
    );
    const revoked = await artseal.json(`evidence revoke-link ${linkId} --reason leaked`);
    assert.deepEqual({ ...revoked, revokedAt: null }, link);
    assert.match(
      await artseal.text(`evidence links ${filingNo}`),
      new RegExp(`^${linkId}  ${filingNo}/1  created .*  revoked ${revoked.revokedAt.replace('+', '\\+')}$`),
    );
    const [entry] = await artseal.list('audit-log');
    assert.deepEqual([entry.action, entry.subject, entry.reason], ['evidence revoke-link', linkId, 'leaked']);
    await artseal.errors(1, 'evidence links AS-1999-000001', /^artseal: FILING_NOT_FOUND: /);
    await artseal.errors(1, 'evidence revoke-link el_0', /^artseal: LINK_NOT_FOUND: LINK_ID names no link/);
  });
}

for (const connection of connections.filter((one) => one !== 'a stopped folder')) {
  test(`over ${connection}: the certificate of a filing is written and verified`, async (t) => {
    const artseal = await commandsOver(t, connection);
    const service = await artseal.service();
    const { filingNo } = (await fileArtwork(service, await service.platform())).json;
    const [vkey = ''] = service.publication.verifierKeys();
    const out = join(temporaryFolder(t), 'certificate.pdf');
    const written = await artseal.json(`certificate ${filingNo} --out ${out} --disclose author,era`);
    assert.deepEqual(written, { file: out, bytes: statSync(out).size });
    const verified = await artsealWith({}).json(['verify', out, '--key', vkey]);
    assert.deepEqual(
      [verified.number, verified.record.author, verified.record.price, verified.hash],
      [filingNo, artwork.author, undefined, undefined],
    );
    assert.deepEqual(verified.hidden, ['condition', 'material', 'price', 'size']);
    const attached = await artseal.lines(`certificate ${filingNo} --out ${out}`);
    assert.deepEqual(attached, [`${out}: ${statSync(out).size} bytes`]);
    await artseal.errors(1, 'certificate AS-1999-000001', /^artseal: FILING_NOT_FOUND: /);
    await artseal.errors(1, `certificate ${filingNo} --disclose all`, /--disclose must name some of author,/);
  });
}

test('evidence fork works on the folder alone, and not beside a server', async (t) => {
  const { dataDir } = await servedFolder(t);
  const artseal = await commandsOver(t, 'a stopped folder', { dataDir });
  assert.equal(
    await artseal.text('evidence fork'),
    'the database agrees with the published log: there is nothing to fork',
  );
  assert.deepEqual(await artseal.json('evidence fork'), { result: 'AGREES' });
  const served = await commandsOver(t, 'a running server', { dataDir });
  await served.errors(
    1,
    'evidence fork',
    /^artseal: another artseal uses .*, a server or a command: wait until it ends or stop it/,
  );
  await served.errors(2, 'evidence fork --url http://127.0.0.1:1', /takes no --url/);
});

testEveryConnection('evidence', 'certificate');
