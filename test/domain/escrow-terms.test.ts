import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type FilingForSale, rejectUnsaleable } from '../../src/domain/escrow-terms.ts';
import { apiError } from '../support/rejected.ts';

const filing: FilingForSale = {
  ...{ filingNo: 'AS-2026-000001', filedBy: 1, isErased: false, active: undefined, transfers: 9_999 },
};
const active = { escrowId: 'ES-2026-0A0A', callerId: 1 };

test('a filing can be sold by the caller that filed it, and by an internal system', () => {
  for (const owner of [1, undefined]) rejectUnsaleable(filing, owner);
});

test('a filing that cannot be sold is rejected with the reason', () => {
  for (const [changes, owner, reason, message] of [
    [{ filedBy: undefined }, 1, 'FILING_NOT_FOUND', /filingNo/],
    [{}, 2, 'PERMISSION_DENIED', /filed/],
    [{ active }, 1, 'ESCROW_ACTIVE', /open escrow already: ES-2026-0A0A/],
    [{ active: { ...active, callerId: 2 } }, 1, 'ESCROW_ACTIVE', /already\.$/],
    [{ transfers: 10_000 }, 1, 'TRANSFERS_EXHAUSTED', /10000 transfers/],
  ] as const) {
    assert.throws(() => rejectUnsaleable({ ...filing, ...changes }, owner), apiError(reason, message));
  }
});
