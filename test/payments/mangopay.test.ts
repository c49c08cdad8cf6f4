import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { createMangopayProvider } from '../../src/payments/mangopay/provider.ts';
import type { PaymentOrder } from '../../src/payments/provider.ts';
import { apiError } from '../support/rejected.ts';
import { heldUp, httpSuite } from './http-suite.ts';
import { amount, held, holdIn, hook, opened } from './mangopay-support.ts';
import { instruct, lookUp, type ProviderEngine, providerSuite } from './provider-suite.ts';

const hourMs = 3_600_000;
const holdRequest = /^POST \/transfers$/;

const engine: ProviderEngine = {
  lapses: false,
  cancelsActions: false,
  notifies: true,
  open: async (t) => {
    const { standIn, provider, order, buyers } = await opened(t);
    standIn.askToAuthenticate(buyers.owner.user);
    let sent = 0;
    return {
      provider,
      order: (buyer) => order(buyer === undefined ? 'rich' : buyer === 'declined' ? 'poor' : 'owner'),
      act: async (asked, how) => standIn.authenticated(holdIn(standIn, asked).Id, how === 'DONE'),
      happen: async (asked, event) => {
        const hold = holdIn(standIn, asked);
        const payIn = standIn.payIns.find(
          ({ CreditedWalletId }) => CreditedWalletId === hold.DebitedWalletId,
        );
        const disputed = standIn.disputes.find(
          ({ InitialTransactionId }) => InitialTransactionId === payIn?.Id,
        );
        if (event === 'DISPUTE') return void standIn.dispute(payIn?.Id ?? assert.fail());
        if (event === 'DISPUTE_WON') return standIn.endDispute(disputed?.Id ?? assert.fail(), 'WON');
        if (event === 'DISPUTE_LOST') return standIn.endDispute(disputed?.Id ?? assert.fail(), 'LOST');
        const paidOut = standIn.transfers.find((one) => one.DebitedWalletId === hold.CreditedWalletId);
        const { Id } = paidOut ?? assert.fail();
        const isBack = standIn.transfers.some(({ InitialTransactionId }) => InitialTransactionId === Id);
        const part = event === 'RETURN_PART' || isBack;
        standIn.refundOutside(Id, part ? amount / 2 : amount);
        if (event === 'RETURN_ALL') standIn.refundOutside(hold.Id);
      },
      lapse: async () => assert.fail('no hold runs out at Mangopay'),
      notification: (asked, sentAtS) => {
        sent += 1;
        const { Id } = holdIn(standIn, asked);
        return hook(standIn.hookSecret, 'TRANSFER_NORMAL_SUCCEEDED', Id, sentAtS + sent);
      },
      forgeries: (genuine) => {
        const { hookSecret } = standIn;
        const other = `${hookSecret.slice(0, -1)}x`;
        const secrets = ['', 'secret=', `secret=${other}`, `secret=${hookSecret}x`];
        const rest = genuine.query.replace(/^secret=[^&]*&/, '');
        return [...secrets, `secret=${hookSecret}&secret=${hookSecret}`, `Secret=${hookSecret}`].map(
          (secret) => ({ ...genuine, query: `${secret}&${rest}` }),
        );
      },
    };
  },
};

providerSuite('at Mangopay', engine);
httpSuite('at Mangopay', {
  open: async (t, now) => {
    const { standIn, provider, order } = await opened(t, now);
    const holds = ({ holdId, buyer }: PaymentOrder) =>
      standIn.transfers.filter(
        ({ Tag, DebitedWalletId, Status }) =>
          Tag === holdId && DebitedWalletId === buyer?.wallet && Status === 'SUCCEEDED',
      ).length;
    const openAt = (url: string) => createMangopayProvider({ ...standIn, url }, Date.now);
    return { standIn, provider, order: (more) => order('rich', more), holds, openAt };
  },
  freeze: [/^POST \/wallets$/, holdRequest],
  release: holdRequest,
  giveBack: /refunds$/,
});

test('Mangopay gets the documented requests for a hold, its release and a refund', async (t) => {
  const { standIn, provider, order, seller, balance } = await opened(t);
  const { escrowUser } = standIn;
  const [asked, given] = [order(), order()];
  const { reference } = await instruct(provider, asked, 'FREEZE');
  const [wallet = assert.fail()] = standIn.wallets.filter(({ Owners }) => Owners[0] === escrowUser);
  await instruct(provider, { ...asked, reference }, 'RELEASE');
  await instruct(provider, given, 'FREEZE');
  await instruct(provider, given, 'REFUND');
  const posts = standIn.requests.filter(({ method }) => method === 'POST');
  const [made, held, released, , , refunded, ...more] = posts;
  assert.deepEqual(more, []);
  const funds = { Currency: 'EUR', Amount: amount };
  const sums = { DebitedFunds: funds, Fees: { ...funds, Amount: 0 }, Tag: asked.holdId };
  assert.deepEqual(made?.body, {
    Owners: [escrowUser],
    Description: `Artseal ${asked.escrowId}`,
    Currency: 'EUR',
    Tag: asked.holdId,
  });
  assert.deepEqual(held?.body, {
    ...sums,
    AuthorId: asked.buyer?.user,
    DebitedWalletId: asked.buyer?.wallet,
    CreditedWalletId: wallet.Id,
    ScaContext: 'USER_PRESENT',
  });
  assert.deepEqual(released?.body, {
    ...sums,
    AuthorId: escrowUser,
    DebitedWalletId: wallet.Id,
    CreditedWalletId: seller.wallet,
    ScaContext: 'USER_PRESENT',
  });
  assert.deepEqual(refunded?.body, { ...sums, Tag: given.holdId, AuthorId: given.buyer?.user });
  assert.equal(refunded?.path, `/transfers/${holdIn(standIn, given).Id}/refunds`);
  assert.equal(new Set(posts.map(({ idempotencyKey }) => idempotencyKey)).size, posts.length);
  assert.equal(balance(seller.wallet), amount);
  assert.equal(balance(asked.buyer?.wallet), 99 * amount);
});

describe('a hold that Mangopay does not make is VOID with the reason, and stays so', () => {
  test('a wallet without enough money', async (t) => {
    const { standIn, provider, order } = await opened(t);
    const asked = order('poor');
    const refused = await instruct(provider, asked, 'FREEZE');
    const { Id } = holdIn(standIn, asked);
    const declined = {
      code: '001001',
      words: 'The wallet does not hold enough money for this order.',
      detail: `${Id}, 001001: Unsufficient wallet balance`,
    };
    assert.deepEqual(refused, { status: 'VOID', reference: Id, declined });
    assert.deepEqual(await lookUp(provider, asked), refused);
    assert.equal((await instruct(provider, asked, 'CANCEL')).status, 'VOID');
  });

  const refusals: readonly (readonly [string, Partial<PaymentOrder>, RegExp])[] = [
    ['a wallet that is unknown', { buyer: { user: 'user_m_escrow', wallet: 'wlt_gone' } }, /DebitedWalletId/],
    ['a user who is unknown', { buyer: { user: 'user_gone', wallet: 'wlt_gone' } }, /AuthorId/],
    ['a wallet of another currency', { currency: 'USD' }, /currency_incompatibility_error/],
  ];
  for (const [what, more, detail] of refusals) {
    test(`${what}, also when the keys are forgotten`, async (t) => {
      let nowMs = Date.now();
      const { standIn, provider, order, buyers } = await opened(t, () => nowMs);
      const seller = standIn.party('OWNER', more.currency ?? 'EUR', 0);
      const asked = order('rich', { ...more, seller });
      const refused = await instruct(provider, asked, 'FREEZE');
      assert.equal(refused.status, 'VOID');
      assert.match(refused.declined?.detail ?? '', detail);
      assert.match(refused.declined?.detail ?? '', /^status 400, /);
      assert.doesNotMatch(refused.declined?.detail ?? '', /standin-api-key/);
      assert.match(refused.declined?.words ?? '', /^The payment provider does not take this payment\./);
      nowMs += 25 * hourMs;
      standIn.forgetKeys();
      const mended = { ...asked, buyer: buyers.rich, currency: 'EUR' };
      assert.equal((await instruct(provider, mended, 'FREEZE')).status, 'VOID');
      assert.equal((await lookUp(provider, asked)).status, 'VOID');
    });
  }

  test('403 whose response was lost: ABSENT, then VOID after a second FREEZE', async (t) => {
    const { standIn, provider, order } = await opened(t);
    const asked = order('rich', { buyer: { user: 'user_gone', wallet: 'wlt_gone' } });
    standIn.failNext(holdRequest, 'lose-answer');
    await assert.rejects(instruct(provider, asked, 'FREEZE'));
    assert.equal((await lookUp(provider, asked)).status, 'ABSENT');
    assert.equal((await instruct(provider, asked, 'FREEZE')).status, 'VOID');
    assert.equal((await lookUp(provider, asked)).status, 'VOID');
  });

  test('a wallet of the order that is not made: VOID, and CANCEL as well', async (t) => {
    const { standIn, provider, order, balance, buyers } = await opened(t);
    const asked = order();
    standIn.failNext(/^POST \/wallets$/, { apiError: 403 });
    const refused = await instruct(provider, asked, 'FREEZE');
    assert.equal(refused.status, 'VOID');
    assert.match(refused.declined?.detail ?? '', /^status 403/);
    assert.equal((await instruct(provider, asked, 'CANCEL')).status, 'VOID');
    assert.equal((await instruct(provider, asked, 'FREEZE')).status, 'VOID');
    assert.equal(balance(buyers.rich.wallet), 100 * amount);
  });
});

test('a CANCEL that breaks off before the wallet is closed is VOID when it is repeated', async (t) => {
  const { standIn, provider, order } = await opened(t);
  const asked = order();
  standIn.failNext(/^PUT /, 'lose-request');
  await assert.rejects(instruct(provider, asked, 'CANCEL'));
  assert.equal((await instruct(provider, asked, 'CANCEL')).status, 'VOID');
  assert.equal((await instruct(provider, asked, 'FREEZE')).status, 'VOID');
});

test('a RELEASE and a REFUND that cross are carried out once', async (t) => {
  const { standIn, provider, balance, buyers, seller, asked } = await held(t);
  const { wait, there, letThrough } = heldUp(t);
  standIn.failNext(holdRequest, { onTheWay: wait });
  const released = instruct(provider, asked, 'RELEASE');
  await there;
  assert.equal((await instruct(provider, asked, 'REFUND')).status, 'RETURNED');
  letThrough();
  assert.equal((await released).status, 'RETURNED');
  assert.equal(balance(seller.wallet), 0);
  assert.equal(balance(buyers.rich.wallet), 100 * amount);
});

describe('a buyer who has to authenticate', () => {
  async function waiting(t: TestContext) {
    const open = await opened(t);
    const { standIn, provider, order, buyers } = open;
    standIn.askToAuthenticate(buyers.owner.user);
    const asked = order('owner');
    const answer = await instruct(provider, asked, 'FREEZE');
    const { Id } = holdIn(standIn, asked);
    return { ...open, asked, answer, transferId: Id };
  }

  test('has to open the URL that Mangopay returns', async (t) => {
    const { answer, transferId } = await waiting(t);
    const nextActionUrl = `https://sca.sandbox.mangopay.com/?token=sca_${transferId}`;
    const { nextActionExpiresAtMs = 0, ...rest } = answer;
    assert.deepEqual(rest, { status: 'AWAITING_BUYER', reference: transferId, nextActionUrl });
    assert.ok(nextActionExpiresAtMs > Date.now() && nextActionExpiresAtMs <= Date.now() + 600_000);
  });

  test('is not sent to an address that is no page: calls reject while the transfer waits', async (t) => {
    const { standIn, provider, asked } = await waiting(t);
    const transfer = holdIn(standIn, asked);
    transfer.PendingUserAction = { RedirectUrl: 'javascript:alert(1)' };
    const message = `Mangopay: transfer ${transfer.Id} waits for the buyer at what is no page`;
    await assert.rejects(lookUp(provider, asked), { message });
    await assert.rejects(instruct(provider, asked, 'FREEZE'), { message });
  });

  test('does not act in time: VOID, with the reason in words', async (t) => {
    const { standIn, provider, asked, transferId } = await waiting(t);
    standIn.authenticated(transferId, false);
    const { status, declined } = await lookUp(provider, asked);
    assert.equal(status, 'VOID');
    assert.equal(declined?.code, '007102');
    assert.match(declined?.words ?? '', /not confirmed within ten minutes/);
  });

  test('fails for a very long reason, which is shortened', async (t) => {
    const { standIn, provider, asked, transferId } = await waiting(t);
    standIn.authenticated(transferId, false);
    Object.assign(holdIn(standIn, asked), {
      ResultCode: '9'.repeat(5_000),
      ResultMessage: 'x'.repeat(50_000),
    });
    const { declined } = await lookUp(provider, asked);
    assert.deepEqual([declined?.code, declined?.detail.length], ['9'.repeat(64), 500]);
  });

  test('is VOID after the time ran out, if the order was cancelled meanwhile', async (t) => {
    const { standIn, provider, asked, transferId, balance, buyers } = await waiting(t);
    for (const kind of ['CANCEL', 'REFUND'] as const) {
      await assert.rejects(instruct(provider, asked, kind), /waits for the buyer/);
    }
    standIn.authenticated(transferId, false);
    assert.equal((await instruct(provider, asked, 'CANCEL')).status, 'VOID');
    assert.equal(balance(buyers.owner.wallet), 100 * amount);
  });
});

describe('what others do at Mangopay', () => {
  test('a part of a hold is returned: the rest is reported', async (t) => {
    const { standIn, provider, asked, reference } = await held(t);
    standIn.refundOutside(reference, 50_000);
    const left = await lookUp(provider, asked);
    assert.deepEqual([left.status, left.amount], ['HELD', BigInt(amount - 50_000)]);
    assert.equal((await instruct(provider, asked, 'REFUND')).status, 'RETURNED');
  });

  test('after a release the seller pays back, and the hook of it leads to the order', async (t) => {
    const { standIn, provider, asked, reference } = await held(t);
    await instruct(provider, asked, 'RELEASE');
    const release = standIn.transfers.at(-1)?.Id ?? assert.fail();
    const part = standIn.refundOutside(release, 50_000);
    const reported = async () => {
      const { status, amount: left } = await lookUp(provider, { ...asked, reference });
      return [status, left];
    };
    assert.deepEqual(await reported(), ['PARTLY_RETURNED', BigInt(amount - 50_000)]);
    standIn.refundOutside(release, amount - 50_000);
    assert.deepEqual(await reported(), ['PARTLY_RETURNED', 0n]);
    standIn.refundOutside(reference);
    assert.deepEqual(await reported(), ['RETURNED', BigInt(amount)]);

    const sent = hook(standIn.hookSecret, 'TRANSFER_REFUND_SUCCEEDED', part.Id, 1_800_000_000);
    const { about } = provider.readNotification(sent);
    const resource = `/refunds/${part.Id}`;
    assert.deepEqual(about, { resource });
    const { signal } = new AbortController();
    assert.deepEqual(await provider.subjectOf?.(resource, signal), { holdId: asked.holdId });
    assert.equal(await provider.subjectOf?.('/refunds/xfer_refund_gone', signal), undefined);
    standIn.failNext(/^GET \/refunds/, { status: 503 });
    await assert.rejects(provider.subjectOf?.(resource, signal) ?? assert.fail(), { kind: 'FAILED' });
  });

  test('a seller who cannot be paid: the RELEASE is declined, and the money stays held', async (t) => {
    const { provider, order, buyers } = await opened(t);
    const asked = order('rich', { seller: buyers.poor });
    await instruct(provider, asked, 'FREEZE');
    const toPayer = await instruct(provider, asked, 'RELEASE');
    assert.deepEqual([toPayer.status, toPayer.declined?.code], ['HELD', '002702']);
    assert.equal((await instruct(provider, asked, 'REFUND')).status, 'RETURNED');
  });

  test('an escrow user who has to authenticate: no response, and the error says what to do', async (t) => {
    const { standIn, provider, asked } = await held(t);
    standIn.askToAuthenticate(standIn.escrowUser);
    for (let sent = 0; sent < 2; sent += 1) {
      await assert.rejects(instruct(provider, asked, 'RELEASE'), /ARTSEAL_MANGOPAY_ESCROW_USER/);
    }
    assert.equal((await lookUp(provider, asked)).status, 'HELD');
    standIn.authenticated(standIn.transfers.at(-1)?.Id ?? assert.fail(), false);
    const refused = await instruct(provider, asked, 'RELEASE');
    assert.deepEqual([refused.status, refused.declined?.code], ['HELD', '007102']);
  });
});

describe('a look-up without a reference', () => {
  test('finds an order among more than a page of others', async (t) => {
    const { standIn, provider, asked, frozen: first } = await held(t);
    const wallet = standIn.wallets.at(-1) ?? assert.fail();
    for (let made = 0; made < 130; made += 1)
      standIn.wallets.push({ ...wallet, Id: `wlt_${made}`, Tag: 'other' });
    assert.deepEqual(await lookUp(provider, asked), first);
  });

  test('ends with the wallets from before the order, but allows for another clock', async (t) => {
    const { standIn, provider, order } = await opened(t);
    const asked = order();
    const sinceS = Math.floor(asked.openedAtMs / 1000) - 600;
    const wallet = standIn.wallets[0] ?? assert.fail();
    const mine = { ...wallet, Owners: [standIn.escrowUser] } as const;
    const before = (made: number) => ({ ...mine, Id: `wlt_${made}`, CreationDate: sinceS - 1 });
    standIn.wallets.unshift(...Array.from({ length: 300 }, (_, made) => before(made)));
    const pages = () => standIn.requests.filter(({ path }) => path.endsWith('/wallets')).length;
    assert.equal((await lookUp(provider, asked)).status, 'ABSENT');
    assert.equal(pages(), 1);
    standIn.wallets.push(
      ...Array.from({ length: 100 }, (_, made) => ({ ...before(made), CreationDate: sinceS })),
    );
    assert.equal((await lookUp(provider, asked)).status, 'ABSENT');
    assert.equal(pages(), 3);
  });

  test('fails, rather than reporting ABSENT, if the newest do not come first', async (t) => {
    const { standIn, provider, order } = await opened(t);
    const wallet = standIn.wallets[0] ?? assert.fail();
    for (const age of [1, 2]) {
      const CreationDate = wallet.CreationDate - age;
      standIn.wallets.push({ ...wallet, Id: `wlt_${age}`, Owners: [standIn.escrowUser], CreationDate });
    }
    await assert.rejects(lookUp(provider, order()), /not in the order/);
  });

  test('fails, rather than reporting ABSENT, if there are too many', async (t) => {
    const { standIn, provider, order } = await opened(t);
    const wallet = standIn.wallets[0] ?? assert.fail();
    for (let made = 0; made < 5_000; made += 1) {
      standIn.wallets.push({ ...wallet, Id: `wlt_${made}`, Owners: [standIn.escrowUser] });
    }
    await assert.rejects(lookUp(provider, order()), /more than 5000/);
  });
});

describe('credentials', () => {
  const { signal } = new AbortController();

  test('are rejected if the escrow user does not exist or cannot receive money', async (t) => {
    const { standIn, buyers } = await opened(t);
    for (const [escrowUser, why] of [
      ['user_gone', /does not exist/],
      [buyers.rich.user, /PAYER/],
    ] as const) {
      const provider = createMangopayProvider({ ...standIn, escrowUser }, Date.now);
      const access = await provider.checkAccess(signal);
      assert.ok(access.kind === 'REJECTED');
      assert.match(access.why, why);
      await provider.close();
    }
  });

  test('get one token for calls one after the other, until shortly before its end or until it is rejected', async (t) => {
    let nowMs = Date.now();
    const { standIn, provider, order } = await opened(t, () => nowMs);
    for (let calls = 0; calls < 5; calls += 1) await lookUp(provider, order());
    assert.equal(standIn.tokens(), 1);
    nowMs += 1_139_000;
    await lookUp(provider, order());
    assert.equal(standIn.tokens(), 1);
    nowMs += 2_000;
    await lookUp(provider, order());
    assert.equal(standIn.tokens(), 2);
    standIn.endTokens();
    await assert.rejects(lookUp(provider, order()), { kind: 'CREDENTIALS_REJECTED' });
    assert.equal((await lookUp(provider, order())).status, 'ABSENT');
  });
});

test('unreadable hooks are rejected, and hooks of other kinds have no order', async (t) => {
  const { standIn, provider } = await opened(t);
  const read = (query: string) => {
    const sent = { ...hook('', '', '', 1), query: `secret=${standIn.hookSecret}${query}` };
    return provider.readNotification(sent);
  };
  const other = read('&EventType=PAYIN_NORMAL_SUCCEEDED&RessourceId=12&Date=1');
  assert.deepEqual(other, { eventId: 'PAYIN_NORMAL_SUCCEEDED 12 1', about: undefined });
  assert.deepEqual(read('?EventType=PAYIN_NORMAL_SUCCEEDED&RessourceId=12&Date=1'), other);
  for (const query of [
    ...['', '&EventType=TRANSFER_NORMAL_SUCCEEDED', '&RessourceId=1&Date=1'],
    '&EventType=TRANSFER_NORMAL_SUCCEEDED&RessourceId=..%2Fx&Date=1',
    '&EventType=TRANSFER_NORMAL_SUCCEEDED&RessourceId=1&RessourceId=2&Date=1',
    '&EventType=TRANSFER_NORMAL_SUCCEEDED&RessourceId=1&Date=now',
  ]) {
    assert.throws(() => read(query), apiError('INVALID_JSON'), query);
  }
});
