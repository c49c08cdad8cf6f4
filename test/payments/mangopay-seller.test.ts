import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { amount, held, opened } from './mangopay-support.ts';
import { instruct, lookUp } from './provider-suite.ts';

type Opened = Awaited<ReturnType<typeof opened>>;
type Seller = { readonly user: string; readonly wallet: string };

/** Sellers whose wallet cannot be paid into, and the words for it. */
const faults: readonly (readonly [string, (open: Opened) => Seller, RegExp])[] = [
  [
    'does not exist',
    ({ seller }) => ({ ...seller, wallet: 'wlt_m_mistyped' }),
    /seller's wallet wlt_m_mistyped does not exist\.$/,
  ],
  [
    'is of somebody else',
    ({ standIn, seller }) => ({ ...seller, wallet: standIn.party('OWNER', 'EUR', 0).wallet }),
    /seller's wallet wlt_m_\w+ is not a wallet of the user user_m_\w+\.$/,
  ],
  [
    'is of another currency',
    ({ standIn }) => standIn.party('OWNER', 'USD', 0),
    /seller's wallet wlt_m_\w+ is in USD, and the order in EUR\.$/,
  ],
];

describe("a seller's wallet that cannot be right", () => {
  for (const [what, sellerOf, words] of faults) {
    test(`${what}: nothing is held, and no FREEZE holds anything later`, async (t) => {
      const open = await opened(t);
      const { standIn, provider, order, buyers, seller, balance } = open;
      const asked = order('rich', { seller: sellerOf(open) });
      const refused = await instruct(provider, asked, 'FREEZE');
      assert.equal(refused.status, 'VOID');
      assert.equal(refused.declined?.code, 'seller_wallet');
      assert.match(refused.declined?.words ?? '', words);
      assert.equal(
        standIn.transfers.every(({ Status }) => Status === 'FAILED'),
        true,
      );
      for (const later of [asked, { ...asked, seller }]) {
        assert.equal((await instruct(provider, later, 'FREEZE')).status, 'VOID');
        assert.equal((await lookUp(provider, later)).status, 'VOID');
      }
      assert.equal(balance(buyers.rich.wallet), 100 * amount);
    });

    test(`${what} by the time of the release: that is declined, and the money stays held`, async (t) => {
      const open = await opened(t);
      const { standIn, provider, order, seller } = open;
      const asked = order();
      const { reference } = await instruct(provider, asked, 'FREEZE');
      const wrong = { ...asked, reference, seller: sellerOf(open) };
      const refused = await instruct(provider, wrong, 'RELEASE');
      assert.deepEqual([refused.status, refused.amount], ['HELD', BigInt(amount)]);
      assert.match(refused.declined?.words ?? '', words);
      assert.equal(standIn.transfers.length, 1);
      const paid = await instruct(provider, { ...wrong, seller }, 'RELEASE', 'again');
      assert.equal(paid.status, 'PAID_OUT');
    });
  }

  test('is not held while Mangopay does not respond about it; a second FREEZE asks again', async (t) => {
    const { standIn, provider, order } = await opened(t);
    const asked = order();
    standIn.failNext(/^GET \/wallets\/[^/]+$/, { status: 503 });
    await assert.rejects(instruct(provider, asked, 'FREEZE'), { kind: 'FAILED' });
    assert.deepEqual(standIn.transfers, []);
    assert.equal((await instruct(provider, asked, 'FREEZE')).status, 'HELD');
  });
});

describe('a seller who has to authenticate before the wallet is shown', () => {
  test('cannot sell: the reason says what to do', async (t) => {
    const { standIn, provider, order, seller } = await opened(t);
    standIn.hideWallets(seller.user);
    const refused = await instruct(provider, order(), 'FREEZE');
    assert.equal(refused.status, 'VOID');
    const words = `The seller's wallet ${seller.wallet} cannot be checked: its owner has to authenticate at Mangopay first.`;
    assert.equal(refused.declined?.words, words);
  });

  test('after the hold is paid: the wallet was checked then', async (t) => {
    const { standIn, provider, seller, balance, asked } = await held(t);
    standIn.hideWallets(seller.user);
    assert.equal((await instruct(provider, asked, 'RELEASE')).status, 'PAID_OUT');
    assert.equal(balance(seller.wallet), amount);
  });
});

test("a FREEZE whose hold exists already is not returned because of the seller's wallet", async (t) => {
  const { standIn, provider, seller, asked } = await held(t);
  standIn.hideWallets(seller.user);
  assert.equal((await instruct(provider, asked, 'FREEZE')).status, 'HELD');
});

test('a FREEZE that arrives after the wallet was found wrong holds nothing', async (t) => {
  const { standIn, provider, order, seller, buyers, balance } = await opened(t);
  const asked = order();
  standIn.failNext(/^POST \/transfers$/, 'lose-answer');
  await assert.rejects(instruct(provider, asked, 'FREEZE'));
  // The list of the order's wallet does not have the hold yet.
  const [hold = assert.fail()] = standIn.transfers.splice(0);
  const wrong = { ...asked, seller: { ...seller, wallet: 'wlt_m_mistyped' } };
  const given = instruct(provider, wrong, 'FREEZE');
  standIn.failNext(/^GET \/transfers/, { onTheWay: async () => void standIn.transfers.push(hold) });
  assert.equal((await given).status, 'RETURNED');
  assert.equal(balance(buyers.rich.wallet), 100 * amount);
});
