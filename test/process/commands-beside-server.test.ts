import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdirSync, readdirSync, renameSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { serverLimitMs } from '../../src/cli/session.ts';
import type { ApiCredentials } from '../../src/client/sign.ts';
import { createCalendar } from '../../src/domain/calendar.ts';
import { sealUrl } from '../../src/keys/webhook-urls.ts';
import { executorOf } from '../../src/store/store.ts';
import { toFile } from '../store/promises/fixtures.ts';
import { createManualClock } from '../support/clock.ts';
import { eventually } from '../support/eventually.ts';
import { issueInto } from '../support/issued.ts';
import { startService } from '../support/service.ts';
import { send } from '../support/signed-request.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { typedCall } from '../support/typed-json.ts';
import { runBounded, serveWatched } from '../support/watched-command.ts';

/** How often a key is made and used at once. */
const rounds = 20;
/** As many connections as the socket takes at a time. */
const socketClients = 64;

/** Runs the real command on a data folder to its end; what it prints. */
async function artseal(t: TestContext, dataDir: string, ...words: string[]): Promise<string> {
  const { code, stdout, stderr } = await runBounded(t, words, { ARTSEAL_DATA_DIR: dataDir });
  assert.deepEqual([code, stderr], [0, ''], words.join(' '));
  return stdout;
}

test('a key or a token is good, or refused, as soon as the command returns', async (t) => {
  const dataDir = temporaryFolder(t);
  await issueInto(dataDir, 0);
  const service = await serveWatched(t, { ARTSEAL_DATA_DIR: dataDir });
  const codeOf = async (platform: ApiCredentials) =>
    (await send(service.publicUrl, platform, { target: '/api/v1/provenance/AS-2026-999999' })).json.code;
  const codes: string[] = [];
  for (let round = 0; round < rounds; round += 1) {
    const issued = await artseal(
      t,
      dataDir,
      'key',
      'create',
      '--name',
      `p${round}`,
      '--tier',
      'TRIAL',
      '--json',
    );
    const key = JSON.parse(issued);
    codes.push(await codeOf(key));
    if (round % 5 > 0) continue;
    await artseal(t, dataDir, 'key', 'suspend', key.keyId);
    codes.push(await codeOf(key));
    await artseal(t, dataDir, 'key', 'revoke', key.keyId);
    codes.push(await codeOf(key));
  }
  const once = ['FILING_NOT_FOUND'];
  const withStatus = ['FILING_NOT_FOUND', 'KEY_SUSPENDED', 'SIGNATURE_INVALID'];
  assert.deepEqual(
    codes,
    Array.from({ length: rounds }, (_, round) => (round % 5 > 0 ? once : withStatus)).flat(),
  );

  const made = await artseal(t, dataDir, 'token', 'create', '--name', 'reader', '--scopes', 'read', '--json');
  const { token, tokenId } = JSON.parse(made);
  const asked = () => typedCall(service.internalUrl, token, 'FilingService/ListFilings', {});
  assert.equal((await asked()).status, 200);
  await artseal(t, dataDir, 'token', 'revoke', tokenId);
  assert.equal((await asked()).status, 401);
});

test('an endpoint of webhooks is sent what follows as soon as the command returns', async (t) => {
  // Ahead of the clock of the command, so that what it makes due is due. It is not moved as far as to the next regular look.
  const clock = createManualClock(Date.now() + 60_000);
  const service = await startService(t, { clock, env: { ARTSEAL_WEBHOOK_NETWORKS: '127.0.0.1' } });
  const { dataDir, keyRing } = service;
  const execute = executorOf(service.store);
  const owner = await execute({ kind: 'FindCaller', name: (await service.platform()).caller });
  const webhookId = 'wh_1';
  await execute({
    kind: 'AddWebhook',
    owner: owner.callerId,
    webhook: {
      // Nobody listens there: an attempt is made all the same.
      ...{ webhookId, ...sealUrl(keyRing, webhookId, 'https://127.0.0.1:1/hook') },
      ...{ eventTypes: undefined, description: '' },
      createdAtS: 1_800_000_000,
      sealedSecret: keyRing.seal(`whsec_${Buffer.alloc(32, 9).toString('base64')}`, webhookId),
    },
  });
  await artseal(t, dataDir, 'webhooks', 'disable', webhookId);
  const deliveries = async () => {
    const page = { from: undefined, size: 1 };
    return (await execute({ kind: 'ListDeliveries', webhookId, owner: undefined, status: undefined, page }))
      .items;
  };
  // Together less than the time after which a server looks by itself.
  const attempted = (afterMs: number) =>
    eventually('an attempt is made', 60_000, async () => {
      if (clock.nowMs() < afterMs + 2_000) clock.advance(20);
      return Number((await deliveries())[0]?.lastAttemptAtMs) > afterMs;
    });

  await artseal(t, dataDir, 'webhooks', 'enable', webhookId);
  const filedMs = clock.nowMs();
  await execute(toFile(owner, { atMs: filedMs, timestamp: createCalendar('UTC').timestamp(filedMs) }));
  await attempted(filedMs);
  const [{ sequence } = assert.fail()] = await deliveries();
  const sentMs = clock.nowMs();
  await artseal(t, dataDir, 'webhooks', 'redeliver', webhookId, '--sequence', String(sequence));
  await attempted(sentMs);
});

test('a command says that the running server did not read the change in time', async (t) => {
  const service = await startService(t);
  // In the place of the socket of the service, one that does not answer.
  const silent = createServer();
  const { promise: asked, resolve } = Promise.withResolvers<void>();
  silent.on('connection', () => resolve());
  const path = join(service.dataDir, 'admin.sock');
  renameSync(path, `${path}.moved`);
  silent.listen(path);
  await once(silent, 'listening');
  t.after(() => {
    silent.close();
    renameSync(`${path}.moved`, path);
  });
  const words = ['key', 'create', '--name', 'late', '--tier', 'TRIAL', '--json'];
  const { code, stdout, stderr } = await runBounded(t, words, { ARTSEAL_DATA_DIR: service.dataDir });
  assert.equal(code, 1);
  await asked;
  assert.equal(JSON.parse(stdout).caller, 'late');
  assert.match(
    stderr,
    new RegExp(
      `the change is stored, but the running server has not read it within ${serverLimitMs / 1_000} s`,
    ),
  );
});

test('a command reaches a server whose data folder has a path that is too long for a socket', async (t) => {
  const dataDir = join(temporaryFolder(t), ...Array.from({ length: 4 }, () => 'folder'.repeat(8)));
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  const service = await startService(t, { dataDir });
  await artseal(t, dataDir, 'key', 'create', '--name', 'far', '--tier', 'TRIAL', '--json');
  assert.deepEqual(
    service.logLines.filter((line) => line.includes('admin.sock')),
    [],
  );
  assert.ok(readdirSync(dataDir).includes('admin.sock'));
  await service.close();
  assert.equal(readdirSync(dataDir).includes('admin.sock'), false);
});

test('clients of the socket that never close their side keep no command waiting', async (t) => {
  const { dataDir } = await startService(t);
  const path = join(dataDir, 'admin.sock');
  for (let client = 0; client < socketClients; client += 1) {
    const socket = connect({ path, allowHalfOpen: true });
    t.after(() => socket.destroy());
    await once(socket, 'connect');
  }
  await artseal(t, dataDir, 'key', 'create', '--name', 'next', '--tier', 'TRIAL', '--json');
});
