import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fileArtwork } from '../../support/calls.ts';
import { fileScope } from '../../support/file-scope.ts';
import { startService } from '../../support/service.ts';
import { send } from '../../support/signed-request.ts';
import { typedError } from '../../support/typed-clients.ts';

const service = await startService(fileScope);

test('an operator lists and revokes links to evidence of any caller', async () => {
  const { admin, actor } = await service.operator();
  const platform = await service.platform();
  const { filingNo } = (await fileArtwork(service, platform)).json;
  const target = `/api/v1/filing/${filingNo}/evidence/links`;
  const { json } = await send(service.publicUrl, platform, { target, body: '{}' });
  const { linkId } = json;
  const { links, nextPageToken } = await admin.listAllLinks({ filingNo });
  const [link = assert.fail(), ...more] = links;
  assert.deepEqual(
    [link.linkId, link.sequence, link.revokedAt, more, nextPageToken],
    [linkId, 1, undefined, [], ''],
  );
  const revoked = await admin.revokeLink({ linkId, reason: 'leaked' });
  assert.equal(revoked.filingNo, filingNo);
  assert.deepEqual({ ...revoked.link, revokedAt: undefined }, { ...link, revokedAt: undefined });
  assert.notEqual(revoked.link?.revokedAt, undefined);
  assert.equal((await fetch(service.publicUrl + json.path)).status, 404);
  assert.deepEqual((await admin.listAllLinks({ filingNo })).links, [revoked.link]);
  const [entry] = (await admin.listAuditLog({ pageSize: 1 })).entries;
  assert.deepEqual([entry?.actor, entry?.subject, entry?.reason], [actor, linkId, 'leaked']);

  await typedError(admin.listAllLinks({ filingNo: 'AS-1999-000001' }), 'FILING_NOT_FOUND');
  await typedError(admin.revokeLink({ linkId: 'el_0' }), 'LINK_NOT_FOUND');
});
