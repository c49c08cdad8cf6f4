import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { artsealWith } from '../support/artseal.ts';
import { escrowIdIn, fileArtwork, getEscrow, openEscrow } from '../support/calls.ts';
import { eventually } from '../support/eventually.ts';
import { fileScope } from '../support/file-scope.ts';
import { assertRejected } from '../support/rejected.ts';
import { startService } from '../support/service.ts';
import { openTestProvider, type Report } from '../support/simulator.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

/** Reports one unit less than is held. */
const oneMissing: Report = (_, payment) =>
  payment.amount === undefined ? payment : { ...payment, amount: payment.amount - 1n };

const provider = openTestProvider(fileScope);
const service = await startService(fileScope, { provider, limits: { pollMs: 20 } });
const platform = await service.platform();

const artseal = artsealWith({ ARTSEAL_DATA_DIR: service.dataDir });
const listed = (flags = '') => artseal.list(`escrow list${flags}`);
const resolve = (escrowId: string, ...decision: readonly string[]) =>
  ['escrow', 'resolve', escrowId, ...decision, '--reason', 'agreed with the gallery'] as const;

const open = async () => openEscrow(service, platform, (await fileArtwork(service, platform)).json.filingNo);

/** Opens an order that needs review, since the provider holds one unit less. */
async function openInReview(): Promise<string> {
  provider.report(oneMissing);
  const pending = await open();
  assertRejected(pending, 503, 'PAYMENT_PENDING');
  return escrowIdIn(pending);
}

const becomes = (escrowId: string, state: string) =>
  eventually(`${escrowId} becomes ${state}`, 60_000, async () => {
    const found = await service.execute({ kind: 'GetEscrow', escrowId, owner: undefined });
    return found?.state === state;
  });

test('an order in review is listed with the reason, and --look-again looks it up again', async () => {
  const escrowId = await openInReview();
  const [order = {}] = await listed(' --review');
  assert.deepEqual([order.escrowId, order.state, order.caller], [escrowId, 'UNPAID', platform.caller]);
  assert.match(String(order.review), /128000000 CNY.*127999999 CNY/);
  assert.deepEqual(order.underWay, ['FREEZE SENT']);
  assert.match(String(order.reference), /^sim-hold-/);
  const line = new RegExp(`^${escrowId}  UNPAID .*127999999.*; at the provider: ${order.reference}$`, 'm');
  assert.match(await artseal.text('escrow list'), line);

  provider.report();
  await artseal.text(resolve(escrowId, '--look-again'));
  await becomes(escrowId, 'FROZEN');
  assert.deepEqual(await listed(' --review'), []);
  const [frozen] = await listed(' --state FROZEN');
  assert.deepEqual([frozen?.escrowId, frozen?.review], [escrowId, undefined]);
});

test('orders are listed with the end of their hold and of the time that the buyer has', async () => {
  const holdExpiresAtMs = Date.UTC(2099, 0, 1);
  provider.report((_, payment) => ({ ...payment, holdExpiresAtMs }));
  const frozen: string = (await open()).json.escrowId;
  provider.report(() => ({ status: 'AWAITING_BUYER', nextActionUrl: 'https://bank.example/act' }));
  const waiting: string = (await open()).json.escrowId;

  const [first, second] = await listed();
  assert.deepEqual([first?.escrowId, second?.escrowId], [waiting, frozen]);
  assert.equal(second?.holdExpiresAt, '2099-01-01T00:00:00+00:00');
  assert.match(String(first?.buyerActsUntil), /^\d{4}-.*\+00:00$/);
  const lines = await artseal.text('escrow list');
  assert.match(lines, new RegExp(`^${waiting} .*FREEZE SENT; the buyer can act until \\d{4}-`, 'm'));
  assert.match(lines, new RegExp(`^${frozen} .*the hold lapses at 2099-01-01T00:00:00\\+00:00$`, 'm'));

  const noDecision = 'does not wait for a decision: it';
  for (const [escrowId, decision, message] of [
    [frozen, '--accept', `${noDecision} is FROZEN, until its caller releases or refunds it`],
    [frozen, '--stop', 'waits for nothing: it is FROZEN'],
    [waiting, '--accept', `${noDecision} waits for the provider or the buyer`],
  ] as const) {
    assert.match(await artseal.errors(1, resolve(escrowId, decision)), new RegExp(message));
  }
});

test('an operator returns the money of an order in review', async () => {
  const escrowId = await openInReview();
  const decided = await artseal.json(resolve(escrowId, '--return'));
  assert.deepEqual(decided.underWay, ['FREEZE SENT', 'CANCEL PREPARED']);
  await becomes(escrowId, 'CLOSED');
});

test('a decision needs its evidence to be readable, and is accepted once', async () => {
  const escrowId = await openInReview();
  const lacking = resolve(escrowId, '--end', 'CLOSED', '--evidence', '/no/such');
  assert.match(await artseal.errors(1, lacking), /\/no\/such does not exist/);
  await artseal.text(resolve(escrowId, '--accept'));
  await becomes(escrowId, 'FROZEN');
  const again = await artseal.errors(1, resolve(escrowId, '--accept'));
  assert.match(again, /ESCROW_STATE_CONFLICT.*does not wait/);
});

test('an order is ended with the file that proves it: REST shows by whom, the audit log its SHA-256', async (t) => {
  const escrowId = await openInReview();
  const letter = join(temporaryFolder(t), 'letter.eml');
  writeFileSync(letter, 'The account was closed. Its customer has the money back.');
  // sha256sum letter.eml
  const evidence = '43da80e2f210830539062fa1c51ed1b9ff7b0def9afb803f52628f5ceeff73ac';
  const ended = await artseal.text(resolve(escrowId, '--end', 'CLOSED', '--evidence', letter));
  assert.match(ended, new RegExp(`^${escrowId}  CLOSED .*decided by an operator`));
  const { history } = (await getEscrow(service, platform, escrowId)).json;
  assert.partialDeepStrictEqual(history.at(-1), { state: 'CLOSED', byOperator: true });
  const [entry] = await artseal.list('audit-log');
  assert.partialDeepStrictEqual(entry, {
    ...{ action: 'escrow resolve', subject: escrowId, reason: 'agreed with the gallery' },
    after: { state: 'CLOSED', decision: 'END', evidence },
  });
});
