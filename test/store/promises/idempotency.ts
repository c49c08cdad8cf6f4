import assert from 'node:assert/strict';
import { type Reason, reasons } from '../../../src/domain/reason.ts';
import { type Command, type Executed, idempotencyRetentionS } from '../../../src/store/store.ts';
import { tester } from '../../support/audit-log.ts';
import { newKey, newToken, newWebhook, nowS, toFile, toTrial, underKey } from './fixtures.ts';
import type { StoreTests } from './tests.ts';

const other = new Uint8Array(32).fill(2);

const refusing = (reason: Reason): Command<'Reject'> => ({
  kind: 'Reject',
  apiError: {
    ...{ reason, message: `because of ${reason}` },
    ...(reason === 'VALIDATION_FAILED'
      ? { hints: {}, violations: [{ field: 'amount', rule: 'must be at least 1' }] }
      : { hints: { retryAfterS: 3 } }),
  },
});

/** HTTP statuses of errors that are not final. */
const passing = [401, 403, 413, 415, 429, 499, 500, 503, 504];

/** The result of a request in words: its filing number or error, and whether it is a replay. */
function replyOf({ outcome }: Executed<'FileArtwork'>): string {
  if (outcome.kind === 'NOT_ADMITTED') return outcome.why;
  const what = outcome.kind === 'DONE' ? outcome.result.filingNo : outcome.apiError.reason;
  return outcome.isReplay ? `${what} again` : what;
}

/** Idempotency keys. */
export function idempotencyPromises({ test }: StoreTests): void {
  test('a further command of a call replaces the stored result together with its effect', async (store) => {
    const { callerId } = store.gallery;
    const first = underKey(callerId, 'k', { kind: 'HasCallers' });
    const continues = first.admission?.idempotency;
    const kept = async () => {
      const { outcome } = await store.execute(first);
      assert.ok(outcome.kind !== 'NOT_ADMITTED' && outcome.isReplay);
      return outcome.kind === 'DONE' ? outcome.result : outcome.apiError.reason;
    };
    await store.execute(first);
    assert.equal(await kept(), true);
    const { outcome } = await store.execute({
      continues,
      effect: { kind: 'CountCalls', callerId, month: '2026-11' },
    });
    assert.partialDeepStrictEqual(outcome, { kind: 'DONE', result: 0, isReplay: false });
    assert.equal(await kept(), 0);
    for (const [reason, left] of [
      ['UNAVAILABLE', 0],
      ['RATE_LIMITED', 0],
      ['WEBHOOK_DISABLED', 'WEBHOOK_DISABLED'],
    ] as const) {
      await store.execute({ continues, effect: refusing(reason) });
      assert.equal(await kept(), left);
    }
  });

  test('a command under a key takes effect once, and each replay gets the first result', async (store) => {
    const by = store.gallery;
    const { keyId } = by;
    const token = newToken();
    const { filingNo } = await store.orderIn(by, 'CLOSED');
    const endsAtS = 1_790_086_400;
    const platform = { name: 'auction house', tier: 'TRIAL', monthlyQuota: 5 } as const;
    const commands: readonly Command[] = [
      toFile(by),
      { kind: 'GetFiling', filingNo, owner: undefined },
      { kind: 'GetFiling', filingNo: 'AS-2026-000099', owner: undefined },
      { kind: 'GetProvenance', filingNo },
      { kind: 'HasCallers' },
      { kind: 'AddPlatform', by: tester, platform, key: newKey() },
      { kind: 'RotateKey', by: tester, keyId, key: newKey(), endsAtS },
      { kind: 'SetKeyStatus', by: tester, keyId, status: 'SUSPENDED' },
      { kind: 'SetPlatformStatus', by: tester, name: 'gallery', status: 'SUSPENDED' },
      { kind: 'ChangeAgreement', by: tester, name: 'gallery', change: toTrial },
      { kind: 'AddToken', by: tester, name: 'ledger', token },
      { kind: 'RevokeToken', by: { ...tester, atS: nowS }, tokenId: token.tokenId },
      { kind: 'UseProvider', name: 'stripe' },
      { kind: 'AddWebhook', owner: by.callerId, webhook: newWebhook() },
    ];
    for (const [place, command] of commands.entries()) {
      const unit = underKey(1, `key ${place}`, command);
      const { outcome } = await store.execute(unit);
      assert.partialDeepStrictEqual(outcome, { kind: 'DONE', isReplay: false });
      for (let repeated = 0; repeated < 2; repeated += 1) {
        const again = await store.execute(unit);
        assert.deepEqual(again.outcome, { ...outcome, isReplay: true }, command.kind);
      }
    }
    assert.equal((await store.filingPages()).flat().length, 2);
  });

  test('a replay gets the first error if its reason is final, and is executed otherwise', async (store) => {
    const tried = Object.entries(reasons) as [Reason, { http: number }][];
    await Promise.all(
      tried.map(async ([reason, { http }]) => {
        const { apiError } = refusing(reason);
        const first = await store.execute(underKey(1, reason, refusing(reason)));
        assert.deepEqual(first.outcome, { kind: 'REJECTED', apiError, isReplay: false });
        const again = await store.execute(underKey(1, reason, toFile(store.gallery)));
        if (passing.includes(http)) assert.match(replyOf(again), /^AS-2026-[0-9]{6}$/, reason);
        else assert.deepEqual(again.outcome, { kind: 'REJECTED', apiError, isReplay: true });
      }),
    );
  });

  test('the first of concurrent requests under a key takes effect, and different ones are rejected', async (store) => {
    const same = () => store.execute(underKey(1, 'k', toFile(store.gallery)));
    const different = () => store.execute(underKey(1, 'k', toFile(store.gallery), { fingerprint: other }));
    assert.deepEqual((await Promise.all([same(), different(), same(), different()])).map(replyOf), [
      'AS-2026-000001',
      'IDEMPOTENCY_KEY_REUSED',
      'AS-2026-000001 again',
      'IDEMPOTENCY_KEY_REUSED',
    ]);
  });

  test('keys are per caller, and every character of a key counts', async (store) => {
    const replies = [];
    for (const [callerId, key] of [
      [1, 'k'],
      [2, 'k'],
      [1, 'K'],
      [1, 'k '],
      [1, ''],
      [1, 'k'],
    ] as const)
      replies.push(replyOf(await store.execute(underKey(callerId, key, toFile(store.gallery)))));
    const numbers = [1, 2, 3, 4, 5].map((place) => `AS-2026-00000${place}`);
    assert.deepEqual(replies, [...numbers, 'AS-2026-000001 again']);
  });

  test('a key is remembered for its retention after its first call', async (store) => {
    const at = async (key: string, atS: number, fingerprint?: Uint8Array) =>
      replyOf(
        await store.execute(
          underKey(1, key, toFile(store.gallery), { nowS: atS, ...(fingerprint && { fingerprint }) }),
        ),
      );
    const last = nowS + idempotencyRetentionS - 1;
    assert.equal(await at('k', nowS), 'AS-2026-000001');
    // Other keys are used meanwhile, which may sweep.
    for (let count = 0; count < 5; count += 1) await at(`other ${count}`, last);
    assert.equal(await at('k', last), 'AS-2026-000001 again');
    assert.equal(await at('k', last, other), 'IDEMPOTENCY_KEY_REUSED');
    assert.equal(await at('k', last + 1, other), 'AS-2026-000007');
    assert.equal(await at('k', last + 2, other), 'AS-2026-000007 again');
  });

  test('a key is remembered if the clock is set back', async (store) => {
    await store.done(underKey(1, 'k', toFile(store.gallery)));
    const earlier = await store.execute(underKey(1, 'k', toFile(store.gallery), { nowS: nowS - 86_400 }));
    assert.equal(replyOf(earlier), 'AS-2026-000001 again');
  });

  test('claims while the clock is ahead forget no key that is needed once it is set back', async (store) => {
    const at = (key: string, atS: number) =>
      store.execute(underKey(1, key, toFile(store.gallery), { nowS: atS, sweepAtS: nowS })).then(replyOf);
    const ahead = nowS + idempotencyRetentionS + 1;
    assert.equal(await at('k', nowS), 'AS-2026-000001');
    for (let count = 0; count < 5; count += 1) await at(`other ${count}`, ahead);
    assert.equal(await at('k', ahead), 'AS-2026-000001 again');
    assert.equal(await at('k', nowS + 1), 'AS-2026-000001 again');
  });

  test('a key is remembered after a crash', async (store) => {
    const { outcome } = await store.execute(underKey(1, 'filed', toFile(store.gallery)));
    await store.execute(underKey(1, 'refused', refusing('ESCROW_ACTIVE')));
    const crashed = await store.openCrashed();
    const again = (key: string) => crashed.execute(underKey(1, key, toFile(store.gallery)));
    assert.deepEqual((await again('filed')).outcome, { ...outcome, isReplay: true });
    assert.equal(replyOf(await again('refused')), 'ESCROW_ACTIVE again');
  });
}
