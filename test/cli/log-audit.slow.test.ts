import assert from 'node:assert/strict';
import { test } from 'node:test';
import { smallLog } from '../evidence/verifier/small-log.ts';
import { auditor } from './auditor.ts';

test('an audit continues from the last block that an interrupted audit verified', async (t) => {
  const own = smallLog(16_999).addKeys();
  const { audit, pin, faults, asked } = await auditor(t, own);
  faults.set('tile/entries/066.p/105', [410]);
  const interrupted = await audit('--pin', pin);
  assert.equal(interrupted.code, 1);
  assert.match(interrupted.errors.join(), /tile\/entries\/066.p\/105 returned HTTP 410$/);
  asked.length = 0;
  const { code, printed } = await audit('--pin', pin, '--json');
  const found = JSON.parse(printed.join());
  assert.deepEqual([code, found.from, found.size], [0, 16_384, 17_001]);
  assert.ok(!asked.includes('tile/entries/063'), asked.join(' '));
  assert.deepEqual(found.years, [{ year: 2026, filings: 16_999, last: 16_999 }]);
});
