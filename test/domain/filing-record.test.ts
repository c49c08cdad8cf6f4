import assert from 'node:assert/strict';
import { test } from 'node:test';
import { filingCommitment } from '../../src/domain/filing-record.ts';
import { artwork } from '../support/samples.ts';

const salt = Buffer.alloc(112);

test('attachments that were added to a filing of version 1 or 2 change the commitment of its leaf', () => {
  for (const recordVersion of [1, 2]) {
    const filing = {
      ...{ ...artwork, price: BigInt(artwork.price), filingNo: 'AS-2026-000001', recordVersion },
      ...{ timestamp: '2026-11-21T09:15:00+08:00', attachments: null, caller: 'gallery' },
    };
    const forged = { ...filing, attachments: `[{"name":"front.jpg","sha256":"${'ab'.repeat(32)}"}]` };
    assert.notEqual(filingCommitment(forged, salt), filingCommitment(filing, salt), String(recordVersion));
  }
});
