import assert from 'node:assert/strict';
import { test } from 'node:test';
import { runHere } from '../support/artseal.ts';
import { fileArtwork, openEscrow } from '../support/calls.ts';
import { type CommandResult, runCommand } from '../support/command.ts';
import { eventually } from '../support/eventually.ts';
import { assertRefused } from '../support/rejected.ts';
import { startService, type TestService } from '../support/service.ts';
import { openTestProvider, type Report } from '../support/simulator.ts';

/** Says of what it holds that it is one unit less. */
const oneMissing: Report = (_, payment) =>
  payment.amount === undefined ? payment : { ...payment, amount: payment.amount - 1n };

/** What a decision needs. */
const why = ['--reason', 'agreed with the gallery'] as const;

const artseal = ({ dataDir }: TestService, ...words: string[]): Promise<CommandResult> =>
  runCommand(words, { ARTSEAL_DATA_DIR: dataDir });

/** The JSON lines that a command prints. */
async function jsonOf(command: Promise<CommandResult>): Promise<Record<string, unknown>[]> {
  const { code, stdout, stderr } = await command;
  assert.equal(code, 0, stderr);
  const lines = stdout.split('\n').filter((line) => line !== '');
  return lines.map((line) => JSON.parse(line));
}

async function orderInNeed(t: Parameters<typeof startService>[0]) {
  const provider = openTestProvider(t);
  provider.report(oneMissing);
  const service = await startService(t, { provider, limits: { pollMs: 20 } });
  const platform = await service.platform();
  const { filingNo } = (await fileArtwork(service, platform)).json;
  assertRefused(await openEscrow(service, platform, filingNo), 503, 'PAYMENT_PENDING');
  const [order = {}] = await jsonOf(artseal(service, 'escrow', 'list', '--review', '--json'));
  const escrowId = String(order.escrowId);
  const becomes = (state: string) =>
    eventually(`${escrowId} becomes ${state}`, 60_000, async () => {
      const found = await service.execute({ kind: 'GetEscrow', escrowId, owner: undefined });
      return found?.state === state;
    });
  return { provider, service, platform, order, escrowId, becomes };
}

test('an order that needs a person is listed with the reason, and asked about again when told to', async (t) => {
  const { provider, service, platform, order, escrowId, becomes } = await orderInNeed(t);
  assert.equal(order.state, 'UNPAID');
  assert.equal(order.caller, platform.caller);
  assert.match(String(order.review), /128000000 CNY.*127999999 CNY/);
  assert.deepEqual(order.underWay, ['FREEZE SENT']);

  const listed = await artseal(service, 'escrow', 'list');
  assert.match(
    listed.stdout,
    new RegExp(`^${escrowId}  UNPAID .*127999999.*; at the provider: ${order.reference}$`, 'm'),
  );
  assert.match(String(order.reference), /^sim-hold-/);

  provider.report();
  assert.equal((await artseal(service, 'escrow', 'resolve', escrowId, '--look-again', ...why)).code, 0);
  await becomes('FROZEN');
  assert.deepEqual(await jsonOf(artseal(service, 'escrow', 'list', '--review', '--json')), []);
  const [frozen] = await jsonOf(artseal(service, 'escrow', 'list', '--state', 'FROZEN', '--json'));
  assert.equal(frozen?.escrowId, escrowId);
  assert.equal(frozen.review, undefined);
});

test('orders are listed with the end of their hold, and with that of the time that the buyer has', async (t) => {
  const holdExpiresAtMs = Date.UTC(2099, 0, 1);
  const provider = openTestProvider(t);
  provider.report((_, payment) => ({ ...payment, holdExpiresAtMs }));
  const service = await startService(t, { provider });
  const platform = await service.platform();
  const open = async () => {
    const { filingNo } = (await fileArtwork(service, platform)).json;
    return (await openEscrow(service, platform, filingNo)).json.escrowId;
  };
  const frozen = await open();
  provider.report(() => ({ status: 'AWAITING_BUYER', nextActionUrl: 'https://bank.example/act' }));
  const waiting = await open();

  const orders = await jsonOf(artseal(service, 'escrow', 'list', '--json'));
  const [first, second] = orders;
  assert.deepEqual([first?.escrowId, second?.escrowId], [waiting, frozen]);
  assert.equal(second?.holdExpiresAt, '2099-01-01T00:00:00+00:00');
  assert.match(String(first?.buyerActsUntil), /^\d{4}-.*\+00:00$/);
  const { stdout } = await artseal(service, 'escrow', 'list');
  assert.match(stdout, new RegExp(`^${waiting} .*FREEZE SENT; the buyer can act until \\d{4}-`, 'm'));
  assert.match(stdout, new RegExp(`^${frozen} .*the hold lapses at 2099-01-01T00:00:00\\+00:00$`, 'm'));

  for (const [escrowId, decision, told] of [
    [
      frozen,
      '--accept',
      /does not wait for a decision: it is FROZEN, until its caller releases or refunds it/,
    ],
    [frozen, '--stop', /waits for nothing: it is FROZEN/],
    [waiting, '--accept', /does not wait for a decision: it waits for the provider or the buyer/],
  ] as const) {
    const env = { ARTSEAL_DATA_DIR: service.dataDir };
    const { code, errors } = await runHere(['escrow', 'resolve', escrowId, decision, ...why], env);
    assert.equal(code, 1);
    assert.match(errors.join('\n'), told);
  }
});

test("a person may accept the provider's word", async (t) => {
  const { service, escrowId, becomes } = await orderInNeed(t);
  assert.equal((await artseal(service, 'escrow', 'resolve', escrowId, '--accept', ...why)).code, 0);
  await becomes('FROZEN');
});

test('a person may have the money returned', async (t) => {
  const { service, escrowId, becomes } = await orderInNeed(t);
  const [decided] = await jsonOf(
    artseal(service, 'escrow', 'resolve', escrowId, '--return', ...why, '--json'),
  );
  assert.deepEqual(decided?.underWay, ['FREEZE SENT', 'CANCEL PREPARED']);
  await becomes('CLOSED');
});

test('a decision that cannot be is refused, and says why', async (t) => {
  const { service, escrowId } = await orderInNeed(t);
  const refusals: [words: string[], code: number, message: RegExp][] = [
    [['resolve', escrowId, ...why], 2, /one of --look-again, --accept, --return, --stop, --close, --end/],
    [
      ['resolve', escrowId, '--accept', '--return', ...why],
      2,
      /one of --look-again, --accept, --return, --stop, --close, --end/,
    ],
    [['resolve', escrowId, '--end', 'FROZEN', ...why], 2, /--end RELEASED\|REFUNDED\|CLOSED, not 'FROZEN'/],
    [['resolve', escrowId, '--end', 'CLOSED', ...why], 2, /needs --evidence FILE with --end/],
    [['resolve', escrowId, '--accept', '--evidence', 'x', ...why], 2, /--evidence FILE with --end alone/],
    [
      ['resolve', escrowId, '--end', 'CLOSED', '--evidence', '/no/such', ...why],
      1,
      /\/no\/such does not exist/,
    ],
    [['resolve', '--accept', ...why], 2, /escrow resolve needs an ESCROW_ID;/],
    [['resolve', escrowId, '--accept'], 2, /needs --reason TEXT \(the audit log keeps it/],
    [['resolve', 'ES-2026-XXXX', '--accept', ...why], 1, /ESCROW_NOT_FOUND: .*artseal escrow list/],
    [['list', '--state', 'PAID'], 2, /UNPAID\|FROZEN/],
    [['pay', escrowId], 2, /list, resolve/],
  ];
  for (const [words, code, message] of refusals) {
    const refused = await artseal(service, 'escrow', ...words);
    assert.equal(refused.code, code, refused.stderr);
    assert.match(refused.stderr, message);
  }
  assert.equal((await artseal(service, 'escrow', 'resolve', escrowId, '--accept', ...why)).code, 0);
  const again = await artseal(service, 'escrow', 'resolve', escrowId, '--accept', ...why);
  assert.match(again.stderr, /ESCROW_STATE_CONFLICT.*does not wait/);
});
