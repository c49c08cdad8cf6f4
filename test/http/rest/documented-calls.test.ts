import assert from 'node:assert/strict';
import { test } from 'node:test';
import { artwork, escrowTerms } from '../../support/samples.ts';
import { startService } from '../../support/service.ts';
import { send } from '../../support/signed-request.ts';

test('a platform files an artwork, asks for its provenance and opens an escrow', async (t) => {
  const service = await startService(t);
  const platform = await service.platform();

  const filing = await send(service.publicUrl, platform, {
    target: '/api/v1/filing',
    body: JSON.stringify(artwork),
  });
  assert.equal(filing.status, 200, filing.text);
  assert.deepEqual(Object.keys(filing.json), ['filingNo', 'status', 'chain', 'hash', 'timestamp']);
  assert.match(filing.json.filingNo, /^AS-\d{4}-000001$/);
  assert.equal(filing.json.status, 'SUBMITTED');

  const provenance = await send(service.publicUrl, platform, {
    target: `/api/v1/provenance/${filing.json.filingNo}`,
  });
  assert.equal(provenance.status, 200, provenance.text);
  assert.deepEqual(provenance.json, {
    filingNo: filing.json.filingNo,
    author: artwork.author,
    records: [{ event: 'SUBMITTED', at: filing.json.timestamp.slice(0, 10) }],
    retentionYears: 5,
  });

  const terms = escrowTerms(filing.json.filingNo);
  const escrow = await send(service.publicUrl, platform, {
    target: '/api/v1/escrow',
    body: JSON.stringify(terms),
  });
  assert.equal(escrow.status, 200, escrow.text);
  assert.match(escrow.json.escrowId, /^ES-\d{4}-[0-9A-Z]{4}$/);
  const { escrowId, ...rest } = escrow.json;
  assert.deepEqual(rest, {
    state: 'FROZEN',
    clearing: 'LICENSED_PSP_NO_SECOND_CLEARING',
    amount: terms.amount,
  });
});
