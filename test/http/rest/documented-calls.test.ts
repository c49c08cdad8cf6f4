import assert from 'node:assert/strict';
import { test } from 'node:test';
import { artwork, escrowTerms } from '../../support/samples.ts';
import { startService } from '../../support/service.ts';
import { send } from '../../support/signed-request.ts';

test('the documented calls return exactly the documented members, in their order', async (t) => {
  const service = await startService(t);
  const platform = await service.platform();

  const filing = await send(service.publicUrl, platform, {
    target: '/api/v1/filing',
    body: JSON.stringify(artwork),
  });
  assert.equal(filing.status, 200, filing.text);
  assert.deepEqual(Object.keys(filing.json), ['filingNo', 'status', 'chain', 'hash', 'timestamp']);
  const { status, chain, hash, timestamp } = filing.json;
  assert.equal(filing.headers['content-type'], 'application/json');
  assert.match(filing.json.filingNo, /^AS-\d{4}-000001$/);
  assert.equal(status, 'SUBMITTED');
  assert.match(chain, /under selection/);
  assert.match(hash, /^[0-9a-f]{64}$/);
  assert.match(timestamp, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00$/);
  assert.equal(filing.json.filingNo.slice(3, 7), timestamp.slice(0, 4));

  const provenance = await send(service.publicUrl, platform, {
    target: `/api/v1/provenance/${filing.json.filingNo}`,
  });
  assert.equal(provenance.status, 200, provenance.text);
  assert.deepEqual(Object.keys(provenance.json), ['filingNo', 'author', 'records', 'retentionYears']);
  assert.deepEqual(Object.keys(provenance.json.records[0]), ['event', 'at']);
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
  assert.deepEqual(Object.keys(escrow.json), ['escrowId', 'state', 'clearing', 'amount']);
  assert.match(escrow.json.escrowId, /^ES-\d{4}-[0-9A-Z]{4}$/);
  const { escrowId, ...rest } = escrow.json;
  assert.deepEqual(rest, {
    state: 'FROZEN',
    clearing: 'LICENSED_PSP_NO_SECOND_CLEARING',
    amount: terms.amount,
  });
});
