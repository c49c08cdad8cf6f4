import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { type ArtsealResult, runHere } from '../support/artseal.ts';
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

const why = ['--reason', 'agreed with the gallery'] as const;

const provider = openTestProvider(fileScope);
const service = await startService(fileScope, { provider, limits: { pollMs: 20 } });
const platform = await service.platform();

const escrow = (...words: string[]): Promise<ArtsealResult> =>
  runHere(['escrow', ...words], { ARTSEAL_DATA_DIR: service.dataDir });

/** Runs a command and returns the JSON lines that it prints. */
async function jsonOf(...words: string[]): Promise<Record<string, unknown>[]> {
  const { code, printed, errors } = await escrow(...words, '--json');
  assert.equal(code, 0, errors.join('\n'));
  return printed.map((line) => JSON.parse(line));
}

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
  const [order = {}] = await jsonOf('list', '--review');
  assert.deepEqual([order.escrowId, order.state, order.caller], [escrowId, 'UNPAID', platform.caller]);
  assert.match(String(order.review), /128000000 CNY.*127999999 CNY/);
  assert.deepEqual(order.underWay, ['FREEZE SENT']);
  assert.match(String(order.reference), /^sim-hold-/);
  const { printed } = await escrow('list');
  const line = new RegExp(`^${escrowId}  UNPAID .*127999999.*; at the provider: ${order.reference}$`, 'm');
  assert.match(printed.join('\n'), line);

  provider.report();
  assert.equal((await escrow('resolve', escrowId, '--look-again', ...why)).code, 0);
  await becomes(escrowId, 'FROZEN');
  assert.deepEqual(await jsonOf('list', '--review'), []);
  const [frozen] = await jsonOf('list', '--state', 'FROZEN');
  assert.deepEqual([frozen?.escrowId, frozen?.review], [escrowId, undefined]);
});

test('orders are listed with the end of their hold and of the time that the buyer has', async () => {
  const holdExpiresAtMs = Date.UTC(2099, 0, 1);
  provider.report((_, payment) => ({ ...payment, holdExpiresAtMs }));
  const frozen: string = (await open()).json.escrowId;
  provider.report(() => ({ status: 'AWAITING_BUYER', nextActionUrl: 'https://bank.example/act' }));
  const waiting: string = (await open()).json.escrowId;

  const [first, second] = await jsonOf('list');
  assert.deepEqual([first?.escrowId, second?.escrowId], [waiting, frozen]);
  assert.equal(second?.holdExpiresAt, '2099-01-01T00:00:00+00:00');
  assert.match(String(first?.buyerActsUntil), /^\d{4}-.*\+00:00$/);
  const lines = (await escrow('list')).printed.join('\n');
  assert.match(lines, new RegExp(`^${waiting} .*FREEZE SENT; the buyer can act until \\d{4}-`, 'm'));
  assert.match(lines, new RegExp(`^${frozen} .*the hold lapses at 2099-01-01T00:00:00\\+00:00$`, 'm'));

  const noDecision = 'does not wait for a decision: it';
  for (const [escrowId, decision, message] of [
    [frozen, '--accept', `${noDecision} is FROZEN, until its caller releases or refunds it`],
    [frozen, '--stop', 'waits for nothing: it is FROZEN'],
    [waiting, '--accept', `${noDecision} waits for the provider or the buyer`],
  ] as const) {
    const { code, errors } = await escrow('resolve', escrowId, decision, ...why);
    assert.equal(code, 1);
    assert.match(errors.join('\n'), new RegExp(message));
  }
});

test('an operator returns the money of an order in review', async () => {
  const escrowId = await openInReview();
  const [decided] = await jsonOf('resolve', escrowId, '--return', ...why);
  assert.deepEqual(decided?.underWay, ['FREEZE SENT', 'CANCEL PREPARED']);
  await becomes(escrowId, 'CLOSED');
});

test('a decision needs its evidence to be readable, and is accepted once', async () => {
  const escrowId = await openInReview();
  const lacking = await escrow('resolve', escrowId, '--end', 'CLOSED', '--evidence', '/no/such', ...why);
  assert.equal(lacking.code, 1);
  assert.match(lacking.errors.join('\n'), /\/no\/such does not exist/);
  assert.equal((await escrow('resolve', escrowId, '--accept', ...why)).code, 0);
  await becomes(escrowId, 'FROZEN');
  const { errors } = await escrow('resolve', escrowId, '--accept', ...why);
  assert.match(errors.join('\n'), /ESCROW_STATE_CONFLICT.*does not wait/);
});

test('an order is ended with the file that proves it: REST shows by whom, the audit log its SHA-256', async (t) => {
  const escrowId = await openInReview();
  const letter = join(temporaryFolder(t), 'letter.eml');
  writeFileSync(letter, 'The account was closed. Its customer has the money back.');
  // sha256sum letter.eml
  const evidence = '43da80e2f210830539062fa1c51ed1b9ff7b0def9afb803f52628f5ceeff73ac';
  const { code, printed, errors } = await escrow(
    ...['resolve', escrowId, '--end', 'CLOSED', '--evidence', letter, ...why],
  );
  assert.equal(code, 0, errors.join('\n'));
  assert.match(printed.join('\n'), new RegExp(`^${escrowId}  CLOSED .*decided by an operator`));
  const { history } = (await getEscrow(service, platform, escrowId)).json;
  assert.partialDeepStrictEqual(history.at(-1), { state: 'CLOSED', byOperator: true });
  const audit = await runHere(['audit-log', '--json'], { ARTSEAL_DATA_DIR: service.dataDir });
  const [entry] = audit.printed.map((line) => JSON.parse(line));
  assert.partialDeepStrictEqual(entry, {
    ...{ action: 'escrow resolve', subject: escrowId, reason: why[1] },
    after: { state: 'CLOSED', decision: 'END', evidence },
  });
});
