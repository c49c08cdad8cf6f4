import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { escrowIdIn, fileArtwork, openEscrow } from '../support/calls.ts';
import { type Connection, commandsOver, connections, testEveryConnection } from '../support/connections.ts';
import { eventually } from '../support/eventually.ts';
import { startService } from '../support/service.ts';
import { openTestProvider, type Report } from '../support/simulator.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

/** Reports one unit less than is held. */
const oneMissing: Report = (_, payment) =>
  payment.amount === undefined ? payment : { ...payment, amount: payment.amount - 1n };
const awaitingBuyer: Report = () => ({ status: 'AWAITING_BUYER', nextActionUrl: 'https://bank.example/act' });

const resolve = (escrowId: string, ...decision: readonly string[]) =>
  ['escrow', 'resolve', escrowId, ...decision, '--reason', 'agreed with the gallery'] as const;

/** Opens an order for each report of the provider, the first report first. The commands then find them over a connection. */
async function withOrders(t: TestContext, connection: Connection, ...reports: readonly Report[]) {
  const [provider, dataDir] = [openTestProvider(t), temporaryFolder(t)];
  const options = { provider, dataDir };
  const service = await startService(t, options);
  const platform = await service.platform();
  const escrowIds: string[] = [];
  for (const report of reports) {
    provider.report(report);
    const opened = await openEscrow(service, platform, (await fileArtwork(service, platform)).json.filingNo);
    escrowIds.push(opened.json.escrowId ?? escrowIdIn(opened));
  }
  await service.close();
  const artseal = await commandsOver(t, connection, options);
  return {
    ...{ provider, platform, artseal, escrowIds, dataDir },
    /** Resolves when an order is in this state. The server of a stopped folder is started for that. */
    becomes: async (escrowId: string, state: string) => {
      await artseal.service();
      return eventually(`${escrowId} becomes ${state}`, 60_000, async () =>
        (await artseal.list(`escrow list --state ${state}`)).some((order) => order.escrowId === escrowId),
      );
    },
  };
}

for (const connection of connections) {
  test(`an order in review is listed with the reason, and --look-again looks it up again: ${connection}`, async (t) => {
    const { artseal, escrowIds, platform, provider } = await withOrders(t, connection, oneMissing);
    const [escrowId = ''] = escrowIds;
    const [order = {}] = await artseal.list('escrow list --review');
    assert.deepEqual([order.escrowId, order.state, order.caller], [escrowId, 'UNPAID', platform.caller]);
    assert.match(String(order.review), /128000000 CNY.*127999999 CNY/);
    assert.deepEqual(order.underWay, ['FREEZE SENT']);
    assert.match(String(order.reference), /^sim-hold-/);
    const line = new RegExp(`^${escrowId}  UNPAID .*127999999.*; at the provider: ${order.reference}$`, 'm');
    assert.match(await artseal.text('escrow list'), line);

    provider.report();
    const decided = await artseal.json(resolve(escrowId, '--look-again'));
    assert.deepEqual([decided.escrowId, decided.state, decided.review], [escrowId, 'UNPAID', undefined]);
    assert.deepEqual(await artseal.list('escrow list --review'), []);
  });

  test(`orders are listed with the end of their hold and of the time that the buyer has: ${connection}`, async (t) => {
    const holdExpiresAtMs = Date.UTC(2099, 0, 1);
    const held: Report = (_, payment) => ({ ...payment, holdExpiresAtMs });
    const { artseal, escrowIds } = await withOrders(t, connection, held, awaitingBuyer);
    const [frozen = '', waiting = ''] = escrowIds;
    const [first, second] = await artseal.list('escrow list');
    assert.deepEqual([first?.escrowId, second?.escrowId], [waiting, frozen]);
    assert.equal(second?.holdExpiresAt, '2099-01-01T00:00:00+00:00');
    assert.match(String(first?.buyerActsUntil), /^\d{4}-.*\+00:00$/);
    const lines = await artseal.text('escrow list');
    assert.match(lines, new RegExp(`^${waiting} .*FREEZE SENT; the buyer can act until \\d{4}-`, 'm'));
    assert.match(lines, new RegExp(`^${frozen} .*the hold lapses at 2099-01-01T00:00:00\\+00:00$`, 'm'));
    assert.deepEqual(
      (await artseal.list('escrow list --state FROZEN')).map(({ escrowId }) => escrowId),
      [frozen],
    );

    await artseal.text(resolve(waiting, '--stop'));
    assert.match(await artseal.text(resolve(waiting, '--close')), / {2}CLOSED .*decided by an operator$/);
  });

  test(`a decision moves the money, and is accepted once: ${connection}`, async (t) => {
    const { artseal, escrowIds, becomes } = await withOrders(t, connection, oneMissing, oneMissing);
    const [returned = '', accepted = ''] = escrowIds;
    const { underWay } = await artseal.json(resolve(returned, '--return'));
    assert.deepEqual(underWay, ['FREEZE SENT', 'CANCEL PREPARED']);
    await artseal.text(resolve(accepted, '--accept'));
    const again = await artseal.errors(1, resolve(accepted, '--accept'));
    assert.match(again, /ESCROW_STATE_CONFLICT.*does not wait/);
    await becomes(returned, 'CLOSED');
    await becomes(accepted, 'FROZEN');
  });

  test(`an order is ended with a file that can be read, and the audit log has its SHA-256: ${connection}`, async (t) => {
    const { artseal, escrowIds, dataDir } = await withOrders(t, connection, oneMissing);
    const [escrowId = ''] = escrowIds;
    const end = (file: string) => resolve(escrowId, '--end', 'CLOSED', '--evidence', file);
    await artseal.errors(1, end('/no/such'), /\/no\/such does not exist/);
    const letter = join(dataDir, 'letter.eml');
    writeFileSync(letter, 'The account was closed. Its customer has the money back.');
    // sha256sum letter.eml
    const evidence = '43da80e2f210830539062fa1c51ed1b9ff7b0def9afb803f52628f5ceeff73ac';
    const ended = await artseal.text(end(letter));
    assert.match(ended, new RegExp(`^${escrowId}  CLOSED .*decided by an operator`));
    const [entry] = await artseal.list('audit-log');
    assert.partialDeepStrictEqual(entry, {
      ...{ action: 'escrow resolve', subject: escrowId, reason: 'agreed with the gallery' },
      after: { state: 'CLOSED', decision: 'END', evidence },
    });
    const actor = connection === 'a remote server' ? /^token tok_/ : /^local:/;
    assert.match(entry.actor, actor);
  });
}

testEveryConnection('escrow');
