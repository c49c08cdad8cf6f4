import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readConfig } from '../../src/config/config.ts';
import { sealUrl } from '../../src/keys/webhook-urls.ts';
import { openRegistry } from '../../src/operations/registry.ts';
import { toFile } from '../store/promises/fixtures.ts';
import { artsealWith } from '../support/artseal.ts';
import { fileScope } from '../support/file-scope.ts';
import { issueInto } from '../support/issued.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const env = { ARTSEAL_DATA_DIR: temporaryFolder(fileScope) };
await issueInto(env.ARTSEAL_DATA_DIR, 2);
const registry = await openRegistry(readConfig(env), 'EXISTING');
fileScope.after(() => registry.store.close());
const { execute, keyRing } = registry;
const [first, second] = [
  await execute({ kind: 'FindCaller', name: 'platform-1' }),
  await execute({ kind: 'FindCaller', name: 'platform-2' }),
];
await add('wh_1', first);
await add('wh_2', first);
await add('wh_3', second);

async function add(webhookId: string, { callerId: owner }: typeof first): Promise<void> {
  const sealedSecret = keyRing.seal('whsec_c2VjcmV0', webhookId);
  const url = sealUrl(keyRing, webhookId, `https://${webhookId}.example/hook?token=unspoken`);
  const described = { ...url, eventTypes: undefined, description: '' };
  const webhook = { webhookId, ...described, createdAtS: 1_800_000_000, sealedSecret };
  await execute({ kind: 'AddWebhook', owner, webhook });
}

/** Files an artwork and records this response of the endpoint to its event. */
async function answered(webhookId: string, httpStatus: number, answer: string): Promise<number> {
  const { id } = await execute({ kind: 'FindWebhook', webhookId, owner: undefined });
  await execute(toFile(first));
  const { due } = await execute({ kind: 'ClaimDeliveries', id, nowMs: Date.now(), limit: 1, underWay: [] });
  const sequence = due[0]?.event.sequence ?? assert.fail();
  const isDelivered = httpStatus < 300;
  const atMs = Date.now();
  await execute({
    kind: 'RecordAttempts',
    outcomes: [
      {
        ...{ id, sequence, attempts: 1, atMs, isDelivered, httpStatus, answer: Buffer.from(answer) },
        error: isDelivered ? null : `it answered ${httpStatus}`,
        retryAtMs: isDelivered ? null : atMs + 300_000,
      },
    ],
  });
  return sequence;
}

const artseal = artsealWith(env);
const jsonOf = (words: string) => artseal.list(`webhooks ${words}`);
const idsOf = async (flags = '') => (await jsonOf(`list${flags}`)).map(({ webhookId }) => webhookId);
const lastEntry = async () => (await artseal.list('audit-log'))[0];

test('list shows all webhooks, those of a platform, and those with a status', async () => {
  const text = await artseal.text('webhooks list');
  assert.match(text, /^wh_1 {2}ENABLED {3}platform-1 {2}https:\/\/wh_1\.example$/m);
  assert.deepEqual(await idsOf(), ['wh_1', 'wh_2', 'wh_3']);
  assert.deepEqual(await idsOf(' --platform platform-2'), ['wh_3']);
  assert.deepEqual(await idsOf(' --status DISABLED'), []);
  assert.deepEqual(await idsOf(' --failing'), []);
  assert.deepEqual(await jsonOf('show wh_1'), [
    {
      webhookId: 'wh_1',
      caller: 'platform-1',
      origin: 'https://wh_1.example',
      eventTypes: ['*'],
      description: '',
      status: 'ENABLED',
      createdAt: '2027-01-15T08:00:00+00:00',
    },
  ]);
  assert.ok(!text.includes('whsec_'));
});

test('deliveries are shown with their responses, newest first', async () => {
  const delivered = await answered('wh_1', 200, 'thanks');
  const failed = await answered('wh_1', 500, 'out of\norder \u001b[2J');
  const [newest, before] = await jsonOf('deliveries wh_1');
  assert.match(String(newest?.eventId), /^evt_[0-9a-f]{32}$/);
  assert.deepEqual(newest, {
    ...{ eventId: newest?.eventId, sequence: failed, type: 'filing.created', status: 'PENDING', attempts: 1 },
    ...{ lastAttemptAt: newest?.lastAttemptAt, nextAttemptAt: newest?.nextAttemptAt },
    ...{ httpStatus: 500, answer: 'out of\norder \u001b[2J', error: 'it answered 500' },
  });
  assert.deepEqual([before?.sequence, before?.status, before?.answer], [delivered, 'DELIVERED', 'thanks']);
  assert.equal((await jsonOf('deliveries wh_1 --limit 1')).length, 1);
  const [pending, ...more] = await jsonOf('deliveries wh_1 --status PENDING');
  assert.deepEqual([pending?.sequence, more], [failed, []]);
  const printed = await artseal.lines('webhooks deliveries wh_1');
  assert.equal(printed.length, 2);
  assert.match(
    printed[0] ?? '',
    /PENDING {5}1 sent .* 500 {2}it answered 500; response "out of\\norder \\u001b\[2J"; next attempt at /,
  );
  assert.deepEqual(await idsOf(' --failing'), ['wh_1']);
  assert.match(await artseal.text('webhooks list --failing'), /failing since \d{4}-/);
});

test('the operator disables, enables and deletes a webhook, each with an audit entry', async () => {
  const disabled = await artseal.text(['webhooks', 'disable', 'wh_2', '--reason', 'on request']);
  assert.match(disabled, /^wh_2 {2}DISABLED {2}platform-1 .* {2}disabled: /);
  const { action, subject, reason } = await lastEntry();
  assert.deepEqual([action, subject, reason], ['webhook disable', 'wh_2', 'on request']);
  assert.deepEqual(await idsOf(' --status DISABLED'), ['wh_2']);
  assert.match(await artseal.errors(1, 'webhooks redeliver wh_2 --since 1h'), /^artseal: WEBHOOK_DISABLED: /);

  assert.equal((await jsonOf('enable wh_2'))[0]?.status, 'ENABLED');
  assert.equal((await lastEntry()).action, 'webhook enable');
  assert.equal(await artseal.text('webhooks delete wh_2 --reason gone'), 'deleted wh_2');
  assert.equal((await lastEntry()).action, 'webhook delete');
  assert.deepEqual(await idsOf(), ['wh_1', 'wh_3']);
});

test('redeliver sends one event, or all undelivered ones since a time', async () => {
  const delivered = await answered('wh_1', 204, '');
  const [failed] = await jsonOf('deliveries wh_1 --status PENDING');
  assert.deepEqual(await jsonOf(`redeliver wh_1 --sequence ${delivered}`), [{ count: 1 }]);
  const [again] = await jsonOf('deliveries wh_1 --limit 1');
  assert.deepEqual([again?.sequence, again?.status, again?.attempts], [delivered, 'PENDING', 0]);
  assert.equal((await lastEntry()).action, 'webhook redeliver');
  assert.equal(await artseal.text('webhooks redeliver wh_1 --since 29d'), 'events to send again: 2');
  const [, second] = await jsonOf('deliveries wh_1 --status PENDING');
  assert.deepEqual([second?.sequence, second?.attempts], [failed?.sequence, 0]);
});

test('errors name the arguments of the command', async () => {
  for (const [words, message] of [
    ['show wh_9', /WEBHOOK_NOT_FOUND: WEBHOOK_ID names no webhook\. See artseal webhooks list/],
    ['list --platform nobody', /NOT_FOUND: .* See artseal platform list/],
    ['redeliver wh_1 --sequence 1000', /VALIDATION_FAILED: --sequence must be at most/],
    ['redeliver wh_1 --since 31d', /EVENTS_EXPIRED/],
    ['disable wh_9', /WEBHOOK_NOT_FOUND/],
  ] as const)
    assert.match(await artseal.errors(1, `webhooks ${words}`), message);
});
