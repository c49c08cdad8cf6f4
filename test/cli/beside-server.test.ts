import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdirSync, readdirSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import { createCalendar } from '../../src/domain/calendar.ts';
import { sealUrl } from '../../src/keys/webhook-urls.ts';
import { toFile } from '../store/promises/fixtures.ts';
import { artsealWith } from '../support/artseal.ts';
import { createManualClock } from '../support/clock.ts';
import { eventually } from '../support/eventually.ts';
import { startService } from '../support/service.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

/** As many connections as the admin socket accepts at a time. */
const socketClients = 64;
const create = 'key create --name next --tier TRIAL';

test('the server sends to a webhook as soon as the command that enables it returns', async (t) => {
  // Ahead of the clock of the command, whose deliveries are then due. It stops short of the next regular look.
  const clock = createManualClock(Date.now() + 60_000);
  const service = await startService(t, { clock, env: { ARTSEAL_WEBHOOK_NETWORKS: '127.0.0.1' } });
  const { dataDir, keyRing, execute } = service;
  const artseal = artsealWith({ ARTSEAL_DATA_DIR: dataDir });
  const owner = await execute({ kind: 'FindCaller', name: (await service.platform()).caller });
  const webhookId = 'wh_1';
  await execute({
    kind: 'AddWebhook',
    owner: owner.callerId,
    webhook: {
      // Nothing listens there: an attempt is made all the same.
      ...{ webhookId, ...sealUrl(keyRing, webhookId, 'https://127.0.0.1:1/hook') },
      ...{ eventTypes: undefined, description: '' },
      createdAtS: 1_800_000_000,
      sealedSecret: keyRing.seal(`whsec_${Buffer.alloc(32, 9).toString('base64')}`, webhookId),
    },
  });
  await artseal.text(`webhooks disable ${webhookId}`);
  const page = { from: undefined, size: 1 };
  const deliveries = async () =>
    (await execute({ kind: 'ListDeliveries', webhookId, owner: undefined, status: undefined, page })).items;
  const attempted = (afterMs: number) =>
    eventually('an attempt is made', 60_000, async () => {
      if (clock.nowMs() < afterMs + 2_000) clock.advance(20);
      return Number((await deliveries())[0]?.lastAttemptAtMs) > afterMs;
    });

  await artseal.text(`webhooks enable ${webhookId}`);
  const filedMs = clock.nowMs();
  await execute(toFile(owner, { atMs: filedMs, timestamp: createCalendar('UTC').timestamp(filedMs) }));
  await attempted(filedMs);
  const [{ sequence } = assert.fail()] = await deliveries();
  const sentMs = clock.nowMs();
  await artseal.text(`webhooks redeliver ${webhookId} --sequence ${sequence}`);
  await attempted(sentMs);
});

test('a command reaches a server whose data folder has a path that is too long for a socket', async (t) => {
  const dataDir = join(temporaryFolder(t), ...Array.from({ length: 4 }, () => 'folder'.repeat(8)));
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  const service = await startService(t, { dataDir });
  await artsealWith({ ARTSEAL_DATA_DIR: dataDir }).text(create);
  assert.deepEqual(
    service.logLines.filter((line) => line.includes('refresh.sock')),
    [],
  );
  assert.ok(readdirSync(dataDir).includes('refresh.sock'));
  await service.close();
  assert.equal(readdirSync(dataDir).includes('refresh.sock'), false);
});

test('clients of the admin socket that never close their side block no command', async (t) => {
  const { dataDir } = await startService(t);
  const path = join(dataDir, 'refresh.sock');
  for (let client = 0; client < socketClients; client += 1) {
    const socket = connect({ path, allowHalfOpen: true });
    t.after(() => socket.destroy());
    await once(socket, 'connect');
  }
  await artsealWith({ ARTSEAL_DATA_DIR: dataDir }).text(create);
});
