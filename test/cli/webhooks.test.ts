import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { readConfig } from '../../src/config/config.ts';
import { newWebhookSecret } from '../../src/events/webhooks/signature.ts';
import { sealUrl } from '../../src/keys/sealed-secrets.ts';
import { openRegistry } from '../../src/operations/registry.ts';
import { toFile } from '../store/promises/fixtures.ts';
import { type Connection, commandsOver, connections, testEveryConnection } from '../support/connections.ts';
import { issueInto } from '../support/issued.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const hourMs = 3_600_000;
/** Nobody listens there. */
const origin = 'http://127.0.0.1:9';

/** The first response to each of the events of platform-1, by sequence. The second is tried again in an hour. */
const responses = [
  { httpStatus: 200, answer: 'thanks' },
  { httpStatus: 500, answer: 'out of\norder \u001b[2J' },
] as const;

/** A data folder with webhooks of two platforms, and two events that were sent to the first of them. */
async function seededFolder(t: TestContext): Promise<string> {
  const dataDir = temporaryFolder(t);
  await issueInto(dataDir, 2);
  const { store, execute, keyRing } = await openRegistry(
    readConfig({ ARTSEAL_DATA_DIR: dataDir }),
    'EXISTING',
  );
  const add = async (webhookId: string, platform: string) => {
    const { callerId: owner } = await execute({ kind: 'FindCaller', name: platform });
    const url = sealUrl(keyRing, webhookId, `${origin}/hook?token=unspoken`);
    const sealedSecret = keyRing.seal(newWebhookSecret(), webhookId);
    const described = { ...url, eventTypes: undefined, description: '', createdAtS: 1_800_000_000 };
    return execute({ kind: 'AddWebhook', owner, webhook: { webhookId, ...described, sealedSecret } });
  };
  const { id } = await add('wh_1', 'platform-1');
  for (const { httpStatus, answer } of responses) {
    await execute(toFile(await execute({ kind: 'FindCaller', name: 'platform-1' })));
    const atMs = Date.now();
    const { due } = await execute({ kind: 'ClaimDeliveries', id, nowMs: atMs, limit: 1, underWay: [] });
    const { sequence } = due[0]?.event ?? assert.fail();
    const isDelivered = httpStatus < 300;
    const result = { httpStatus, answer: Buffer.from(answer), isDelivered };
    const error = isDelivered ? null : `it answered ${httpStatus}`;
    const retryAtMs = isDelivered ? null : atMs + hourMs;
    await execute({
      kind: 'RecordAttempts',
      outcomes: [{ ...result, id, sequence, attempts: 1, atMs, error, retryAtMs }],
    });
  }
  await add('wh_2', 'platform-1');
  await add('wh_3', 'platform-2');
  await store.close();
  return dataDir;
}

/** `artseal` over a connection to a folder of its own. */
async function open(t: TestContext, connection: Connection) {
  const artseal = await commandsOver(t, connection, { dataDir: await seededFolder(t) });
  const jsonOf = (words: string) => artseal.list(`webhooks ${words}`);
  return {
    artseal,
    jsonOf,
    idsOf: async (flags = '') => (await jsonOf(`list${flags}`)).map(({ webhookId }) => webhookId),
    lastEntry: async () => (await artseal.list('audit-log'))[0],
  };
}

for (const connection of connections) {
  test(`over ${connection}, webhooks are listed and shown, without their URL`, async (t) => {
    const { artseal, jsonOf, idsOf } = await open(t, connection);
    const listed = await artseal.text('webhooks list');
    assert.match(listed, new RegExp(`^wh_2 {2}ENABLED {3}platform-1 {2}${origin}$`, 'm'));
    assert.match(
      listed,
      new RegExp(`^wh_1 {2}ENABLED {3}platform-1 {2}${origin} {2}failing since \\d{4}-`, 'm'),
    );
    assert.deepEqual(await idsOf(), ['wh_1', 'wh_2', 'wh_3']);
    assert.deepEqual(await idsOf(' --platform platform-2'), ['wh_3']);
    assert.deepEqual(await idsOf(' --status DISABLED'), []);
    assert.deepEqual(await idsOf(' --failing'), ['wh_1']);
    assert.deepEqual(await jsonOf('show wh_2'), [
      {
        ...{ webhookId: 'wh_2', caller: 'platform-1', origin, eventTypes: ['*'], description: '' },
        ...{ status: 'ENABLED', createdAt: '2027-01-15T08:00:00+00:00' },
      },
    ]);
    const shown = await artseal.text('webhooks show wh_1');
    assert.match(shown, new RegExp(`^origin +${origin}$`, 'm'));
    assert.match(shown, /^failingSince +\d{4}-/m);
  });

  test(`over ${connection}, deliveries are listed with their responses, newest first`, async (t) => {
    const { artseal, jsonOf } = await open(t, connection);
    const [newest, before, ...more] = await jsonOf('deliveries wh_1');
    assert.match(String(newest?.eventId), /^evt_[0-9a-f]{32}$/);
    assert.match(newest?.lastAttemptAt, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00$/);
    assert.deepEqual(newest, {
      ...{ eventId: newest?.eventId, sequence: 2, type: 'filing.created', status: 'PENDING', attempts: 1 },
      ...{ lastAttemptAt: newest?.lastAttemptAt, nextAttemptAt: newest?.nextAttemptAt },
      ...{ httpStatus: 500, answer: 'out of\norder \u001b[2J', error: 'it answered 500' },
    });
    assert.deepEqual([before?.sequence, before?.status, before?.answer], [1, 'DELIVERED', 'thanks']);
    assert.deepEqual(more, []);
    assert.equal((await jsonOf('deliveries wh_1 --limit 1')).length, 1);
    assert.deepEqual(await jsonOf('deliveries wh_1 --status PENDING'), [newest]);
    const printed = await artseal.lines('webhooks deliveries wh_1');
    assert.equal(printed.length, 2);
    assert.match(
      printed[0] ?? '',
      /PENDING {5}1 sent .* 500 {2}it answered 500; response "out of\\norder \\u001b\[2J"; next attempt at /,
    );
  });

  test(`over ${connection}, webhooks are disabled, enabled and deleted, each with an audit entry`, async (t) => {
    const { artseal, jsonOf, idsOf, lastEntry } = await open(t, connection);
    const disabled = await artseal.text(['webhooks', 'disable', 'wh_3', '--reason', 'on request']);
    assert.match(disabled, /^wh_3 {2}DISABLED {2}platform-2 .* {2}disabled: an operator disabled it$/);
    const { action, subject, reason, actor } = await lastEntry();
    assert.deepEqual([action, subject, reason], ['webhook disable', 'wh_3', 'on request']);
    assert.match(actor, connection === 'a remote server' ? /^token tok_/ : /^local:/);
    assert.deepEqual(await idsOf(' --status DISABLED'), ['wh_3']);
    const [event] = await artseal.list('events --platform platform-2');
    assert.deepEqual([event.type, event.webhookId], ['webhook.disabled', 'wh_3']);
    await artseal.errors(1, 'webhooks redeliver wh_3 --since 1h', /^artseal: WEBHOOK_DISABLED: /);

    assert.equal((await jsonOf('enable wh_3'))[0]?.status, 'ENABLED');
    assert.equal((await lastEntry()).action, 'webhook enable');
    assert.deepEqual(await jsonOf('delete wh_3 --reason gone'), [{ webhookId: 'wh_3' }]);
    const deleted = await lastEntry();
    assert.deepEqual([deleted.action, deleted.reason], ['webhook delete', 'gone']);
    assert.equal(await artseal.text('webhooks delete wh_2'), 'deleted wh_2');
    assert.deepEqual(await idsOf(), ['wh_1']);
  });

  test(`over ${connection}, all undelivered events since a time are sent again, or one event, if there are any`, async (t) => {
    const { artseal, jsonOf, lastEntry } = await open(t, connection);
    assert.equal(await artseal.text('webhooks redeliver wh_1 --since 29d'), 'events to send again: 1');
    assert.deepEqual(await jsonOf('redeliver wh_1 --sequence 1 --reason lost'), [{ count: 1 }]);
    const entry = await lastEntry();
    assert.deepEqual([entry.action, entry.subject, entry.reason], ['webhook redeliver', 'wh_1', 'lost']);
    assert.deepEqual(await jsonOf('redeliver wh_3 --since 29d'), [{ count: 0 }]);
    assert.deepEqual(await lastEntry(), entry);
  });

  test(`over ${connection}, errors name the arguments of the command`, async (t) => {
    const { artseal } = await open(t, connection);
    for (const [words, code, message] of [
      ['show wh_9', 1, /WEBHOOK_NOT_FOUND: WEBHOOK_ID names no webhook\. See artseal webhooks list/],
      ['list --platform nobody', 1, /NOT_FOUND: --platform names no platform.* See artseal platform list/],
      ['redeliver wh_1 --sequence 1000', 1, /VALIDATION_FAILED: --sequence must be at most 2/],
      ['redeliver wh_1 --since 31d', 1, /EVENTS_EXPIRED: --since must not be more than 30 days ago/],
      ['redeliver wh_1', 2, /needs either --sequence or --since/],
      ['disable wh_9', 1, /WEBHOOK_NOT_FOUND/],
      ['delete wh_9', 1, /WEBHOOK_NOT_FOUND/],
    ] as const)
      await artseal.errors(code, `webhooks ${words}`, message);
  });
}

testEveryConnection('webhooks');
