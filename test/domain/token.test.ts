import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checkReason } from '../../src/domain/audit-entry.ts';
import { checkTokenTerms, scopeNeeded, scopes, scopesIn, tokenStatusAt } from '../../src/domain/token.ts';
import { tokenTerms } from '../support/tokens.ts';

const nowS = 1_790_000_000;

test('reads need read, writes the scope of their service, and operator services operate', () => {
  assert.deepEqual(
    scopes.map((scope) => [scope, scopeNeeded(scope, false), scopeNeeded(scope, true)]),
    [
      ['read', 'read', 'read'],
      ['file', 'read', 'file'],
      ['escrow', 'read', 'escrow'],
      ['webhook', 'read', 'webhook'],
      ['link', 'read', 'link'],
      ['operate', 'operate', 'operate'],
    ],
  );
});

test('terms may have any scopes, an end in the future and a platform', () => {
  for (const over of [
    { scopes: [] },
    { scopes },
    { scopes: ['file', 'read', 'file'] },
    { expiresAtS: nowS + 1 },
    { platform: 'gallery' },
  ]) {
    assert.deepEqual(checkTokenTerms(tokenTerms('ledger', over), nowS), []);
  }
});

const faults = [
  ['name', tokenTerms('')],
  ['scopes', tokenTerms('ledger', { scopes: ['read', 'constructor'] })],
  ['scopes', tokenTerms('ledger', { scopes: [''] })],
  ['scopes', tokenTerms('ledger', { scopes: ['read', 'operate'], platform: 'gallery' })],
  ['expiresAt', tokenTerms('ledger', { expiresAtS: nowS })],
  ['name; scopes; expiresAt', tokenTerms('', { scopes: ['all'], expiresAtS: 0 })],
] as const;
for (const [fields, terms] of faults) {
  test(`terms are rejected for ${fields}: ${JSON.stringify(terms)}`, () => {
    const violations = checkTokenTerms(terms, nowS);
    assert.equal(violations.map(({ field }) => field).join('; '), fields);
  });
}

test('scopes are listed once, in order', () => {
  assert.deepEqual(scopesIn(['operate', 'read', 'operate', 'none']), ['read', 'operate']);
});

test('a token is valid until it expires or is revoked', () => {
  const statusAt = (revokedAtS: number | null, expiresAtS: number | null, atS: number) =>
    tokenStatusAt({ revokedAtS, expiresAtS }, atS);
  assert.equal(statusAt(null, null, nowS), 'VALID');
  assert.equal(statusAt(null, nowS, nowS - 0.001), 'VALID');
  assert.equal(statusAt(null, nowS, nowS), 'EXPIRED');
  assert.equal(statusAt(nowS - 1, nowS, nowS), 'REVOKED');
  assert.equal(statusAt(nowS + 1, null, nowS), 'REVOKED');
});

test('a reason is optional and has at most 500 characters', () => {
  for (const reason of ['', 'x', '齐'.repeat(500), '\u{1f58c}'.repeat(500)])
    assert.deepEqual(checkReason(reason), []);
  for (const reason of ['x'.repeat(501), ' ', 'a\nb', '\ud800']) {
    assert.deepEqual(
      checkReason(reason).map(({ field }) => field),
      ['reason'],
    );
  }
});
