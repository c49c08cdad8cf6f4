import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fileArtwork, openEscrow } from '../../support/calls.ts';
import { fileScope } from '../../support/file-scope.ts';
import { openLedger } from '../../support/ledger.ts';
import { startService } from '../../support/service.ts';
import { send } from '../../support/signed-request.ts';

const service = await startService(fileScope);
const ledger = openLedger(fileScope, service);
const owner = await service.platform();
const other = await service.platform();
const { filingNo } = (await fileArtwork(service, owner)).json;
const { escrowId } = (await openEscrow(service, owner, filingNo)).json;

const links = `/api/v1/filing/${filingNo}/evidence/links`;
const made = await send(service.publicUrl, owner, { target: links, body: '{}' });
assert.equal(made.status, 200, made.text);
const link = `${links}/${made.json.linkId}`;

/** What a platform may try on a filing or an order, the same on one that does not exist, and the body of both. */
const attempts: readonly (readonly [method: string, target: string, elsewhere: string, body?: string])[] = [
  ['GET', `/api/v1/filing/${filingNo}`, '/api/v1/filing/AS-1999-000001'],
  ['GET', `/api/v1/filing/${filingNo}/evidence`, '/api/v1/filing/AS-1999-000001/evidence'],
  ['POST', links, '/api/v1/filing/AS-1999-000001/evidence/links', '{}'],
  ['GET', links, '/api/v1/filing/AS-1999-000001/evidence/links'],
  ['DELETE', link, '/api/v1/filing/AS-1999-000001/evidence/links/el_0'],
  ['GET', `/api/v1/escrow/${escrowId}`, '/api/v1/escrow/ES-1999-0000'],
  ['POST', `/api/v1/escrow/${escrowId}/release`, '/api/v1/escrow/ES-1999-0000/release'],
  ['POST', `/api/v1/escrow/${escrowId}/refund`, '/api/v1/escrow/ES-1999-0000/refund'],
];

for (const [method, target, elsewhere, body] of attempts) {
  test(`the response is the same for another platform's resource as for none: ${method} ${elsewhere}`, async () => {
    const before = ledger.holdings();
    const [theirs, nobodys] = await Promise.all(
      [target, elsewhere].map((target) =>
        send(service.publicUrl, other, { method, target, ...(body !== undefined && { body }) }),
      ),
    );
    assert.equal(theirs?.status, 404);
    assert.deepEqual({ ...theirs.json, requestId: '' }, { ...nobodys?.json, requestId: '' });
    assert.deepEqual(ledger.holdings(), before);
  });
}

test("no list shows another platform's filings or orders", async () => {
  for (const target of ['/api/v1/filing', '/api/v1/escrow', `/api/v1/escrow?filingNo=${filingNo}`]) {
    const { json } = await send(service.publicUrl, other, { target });
    assert.deepEqual(Object.values(json), [[], ''], target);
  }
});
