import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fileArtwork, openEscrow } from '../support/calls.ts';
import { type CommandResult, runCommand } from '../support/command.ts';
import { eventually } from '../support/eventually.ts';
import { assertRefused } from '../support/refused.ts';
import { startService, type TestService } from '../support/service.ts';
import { openTestInstitution, type Report } from '../support/simulator.ts';

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
  const institution = openTestInstitution(t);
  institution.report(oneMissing);
  const service = await startService(t, { institution, limits: { pollMs: 20 } });
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
  return { institution, service, platform, order, escrowId, becomes };
}

test('an order that needs a person is listed with the reason, and asked about again when told to', async (t) => {
  const { institution, service, platform, order, escrowId, becomes } = await orderInNeed(t);
  assert.equal(order.state, 'UNPAID');
  assert.equal(order.caller, platform.caller);
  assert.match(String(order.review), /128000000 CNY.*127999999 CNY/);
  assert.deepEqual(order.underWay, ['FREEZE SENT']);

  const listed = await artseal(service, 'escrow', 'list');
  assert.match(
    listed.stdout,
    new RegExp(`^${escrowId}  UNPAID .*127999999.*; at the institution: ${order.reference}$`, 'm'),
  );
  assert.match(String(order.reference), /^sim-hold-/);

  institution.report();
  assert.equal((await artseal(service, 'escrow', 'resolve', escrowId, '--look-again', ...why)).code, 0);
  await becomes('FROZEN');
  assert.deepEqual(await jsonOf(artseal(service, 'escrow', 'list', '--review', '--json')), []);
  const [frozen] = await jsonOf(artseal(service, 'escrow', 'list', '--state', 'FROZEN', '--json'));
  assert.equal(frozen?.escrowId, escrowId);
  assert.equal(frozen.review, undefined);
});

test("a person may accept the institution's word", async (t) => {
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
    [['resolve', escrowId, ...why], 2, /one of --look-again, --accept, --return, --stop, --close/],
    [
      ['resolve', escrowId, '--accept', '--return', ...why],
      2,
      /one of --look-again, --accept, --return, --stop, --close/,
    ],
    [['resolve', '--accept', ...why], 2, /escrow resolve needs an ESCROW_ID;/],
    [['resolve', escrowId, '--accept'], 2, /needs --reason TEXT \(money is decided here/],
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
