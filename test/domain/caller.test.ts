import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  type Agreement,
  agreedQuota,
  callsLeft,
  checkAgreement,
  checkCallerName,
  rotate,
  statusAt,
  type Tier,
} from '../../src/domain/caller.ts';

const agreement = (tier: Tier | undefined, monthlyQuota?: number, unlimited = false): Agreement => ({
  name: 'platform',
  tier,
  monthlyQuota,
  unlimited,
});

const accepted: readonly (readonly [agreement: Agreement, quota: number | undefined])[] = [
  [agreement('TRIAL'), 1_000],
  [agreement('STANDARD'), 10_000],
  [agreement('ENTERPRISE', 1), 1],
  [agreement('ENTERPRISE', Number.MAX_SAFE_INTEGER), Number.MAX_SAFE_INTEGER],
  [agreement('ENTERPRISE', undefined, true), undefined],
];

for (const [agreed, quota] of accepted) {
  test(`${agreed.tier}, ${agreed.monthlyQuota ?? 'no'} calls stated, unlimited ${agreed.unlimited}: ${quota} calls`, () => {
    assert.deepEqual(checkAgreement(agreed), []);
    assert.equal(agreedQuota(agreed), quota);
  });
}

test('a quota that was lowered below the calls leaves none', () => {
  assert.deepEqual([callsLeft(3, 2), callsLeft(2, 3), callsLeft(null, 3)], [1, 0, null]);
});

const refused: readonly (readonly [what: string, agreement: Agreement, field: string, rule: RegExp])[] = [
  ['no tier', agreement(undefined), 'tier', /TRIAL, STANDARD, ENTERPRISE/],
  ['ENTERPRISE without a quota', agreement('ENTERPRISE'), 'monthlyQuota', /is required for ENTERPRISE/],
  ['ENTERPRISE with both', agreement('ENTERPRISE', 5, true), 'monthlyQuota', /both/],
  ['ENTERPRISE with no calls', agreement('ENTERPRISE', 0), 'monthlyQuota', /from 1 to 9007199254740991/],
  ['ENTERPRISE with a part of a call', agreement('ENTERPRISE', 1.5), 'monthlyQuota', /integer/],
  ['ENTERPRISE with NaN', agreement('ENTERPRISE', Number.NaN), 'monthlyQuota', /integer/],
  ['ENTERPRISE beyond 2^53-1', agreement('ENTERPRISE', 2 ** 53), 'monthlyQuota', /9007199254740991/],
  ['TRIAL with a quota', agreement('TRIAL', 5), 'monthlyQuota', /fixed by the tier TRIAL/],
  ['STANDARD without limit', agreement('STANDARD', undefined, true), 'monthlyQuota', /fixed by the tier/],
];

for (const [what, agreed, field, rule] of refused) {
  test(`an agreement is rejected: ${what}`, () => {
    const [violation] = checkAgreement(agreed);
    assert.equal(violation?.field, field);
    assert.match(violation.rule, rule);
  });
}

test('a caller has a name of 1 to 128 code points', () => {
  for (const name of ['a', '🖌'.repeat(128)]) assert.deepEqual(checkCallerName(name), []);
  for (const name of ['', ' ', '🖌'.repeat(129), 'a\nb', '\ud800']) {
    assert.equal(checkCallerName(name)[0]?.field, 'name');
    assert.equal(checkAgreement({ ...agreement('TRIAL'), name })[0]?.field, 'name');
  }
});

test('a key has its status until it expires, and is revoked from then on', () => {
  for (const status of ['ACTIVE', 'SUSPENDED', 'REVOKED'] as const) {
    assert.equal(statusAt({ status, expiresAtS: null }, Number.MAX_SAFE_INTEGER), status);
    for (const nowS of [0, 999, 999.999]) assert.equal(statusAt({ status, expiresAtS: 1_000 }, nowS), status);
    for (const nowS of [1_000, 1_000.001, 2_000])
      assert.equal(statusAt({ status, expiresAtS: 1_000 }, nowS), 'REVOKED');
  }
});

test('a new key has the status of the rotated one', () => {
  for (const status of ['ACTIVE', 'SUSPENDED'] as const) {
    const old = { status, expiresAtS: 2_000 };
    assert.deepEqual(rotate({ status, expiresAtS: null }, 500, 2_000), { status, old });
  }
});

test('rotating a key again does not prolong it', () => {
  for (const [requested, ends] of [
    [3_000, 2_000],
    [2_000, 2_000],
    [1_000, 1_000],
  ] as const) {
    assert.equal(rotate({ status: 'ACTIVE', expiresAtS: 2_000 }, 500, requested).old.expiresAtS, ends);
  }
});

test('a revoked or expired key cannot be rotated', () => {
  const revoked = { reason: 'VALIDATION_FAILED', message: /keyId names a key that is revoked/ };
  assert.throws(() => rotate({ status: 'REVOKED', expiresAtS: null }, 500, 2_000), revoked);
  assert.throws(() => rotate({ status: 'SUSPENDED', expiresAtS: 500 }, 500, 2_000), revoked);
});
