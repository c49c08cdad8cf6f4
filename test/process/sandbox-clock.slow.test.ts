import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { verifyWebhook } from '../../clients/typescript/src/webhook.ts';
import { askProvenance, fileArtwork, getEscrow, getEvidence, openEscrow } from '../support/calls.ts';
import { eventually } from '../support/eventually.ts';
import { serveIssued } from '../support/issued.ts';
import { listenLocally } from '../support/local-server.ts';
import { scrape } from '../support/metrics.ts';
import { productionSettings } from '../support/production.ts';
import { stripeSettings } from '../support/samples.ts';
import { send } from '../support/signed-request.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { assertOneLine, runCommand, serveWatched } from '../support/watched-command.ts';

const dayS = 86_400;
const limitMs = 30_000;

/** Starts a sandbox, and returns it with commands and calls. `env` is for its commands. */
async function startSandbox(t: TestContext) {
  const { dataDir, platform, ...first } = await serveIssued(t);
  let service = first;
  const env = { ARTSEAL_DATA_DIR: dataDir };
  /** Runs a command that must exit with 0; returns what it prints. */
  const artseal = async (line: string) => {
    const { code, stdout, stderr } = await runCommand(line.split(' '), env);
    assert.equal(code, 0, `artseal ${line}: ${stderr}`);
    return stdout;
  };
  const json = async (line: string) => JSON.parse(await artseal(`${line} --json`));
  const file = async (): Promise<string> => {
    const { status, json: filed, text } = await fileArtwork(service, platform);
    assert.equal(status, 200, text);
    return filed.filingNo;
  };
  const freeze = async (filingNo: string): Promise<string> => {
    const { status, json: order, text } = await openEscrow(service, platform, filingNo);
    assert.deepEqual([status, order.state], [200, 'FROZEN'], text);
    return order.escrowId;
  };
  const call = async (target: string, body?: object) => {
    const sent = { target, ...(body && { body: JSON.stringify(body) }) };
    const { status, json: answer, text } = await send(service.publicUrl, platform, sent);
    assert.equal(status, 200, text);
    return answer;
  };
  return {
    ...{ dataDir, env, artseal, json, file, freeze, call, platform },
    service: () => service,
    restart: async () => {
      service = { ...first, ...(await serveWatched(t, env)) };
    },
    order: async (escrowId: string) => (await getEscrow(service, platform, escrowId)).json,
    metric: async (name: string) => (await scrape(service.metricsUrl)).value(name) ?? assert.fail(name),
    /** The seconds by which the sandbox is ahead of the time of this machine. */
    aheadS: async () => (Date.parse((await json('clock show')).sandbox ?? 0) - Date.now()) / 1_000,
    /** Asserts that the published log, a bundle of this filing and the deployment have no fault; returns what was warned of. */
    findNothingWrong: async (filingNo: string): Promise<string> => {
      const vkey = (await (await fetch(`${service.publicUrl}/log/vkey`)).text()).trim();
      const bundle = join(temporaryFolder(t), 'bundle.json');
      writeFileSync(bundle, (await getEvidence(service, platform, filingNo)).text);
      assert.match(await artseal(`verify ${bundle} --key ${vkey}`), /^VERIFIED|PROVEN/m);
      assert.doesNotMatch(await artseal('check'), /^fault/m);
      const audit = await runCommand(['log', 'audit', `${service.publicUrl}/log`, '--key', vkey], env);
      assert.equal(audit.code, 0, audit.stderr);
      return audit.stderr;
    },
  };
}

/** An endpoint that answers 500 until it is mended. It keeps what it was sent. */
async function startEndpoint(t: TestContext) {
  const received: { readonly headers: Record<string, string>; readonly body: string }[] = [];
  let status = 500;
  const server = createServer((request, response) => {
    const parts: Buffer[] = [];
    request.on('data', (part: Buffer) => parts.push(part));
    request.on('end', () => {
      received.push({ headers: request.headers as Record<string, string>, body: `${Buffer.concat(parts)}` });
      response.writeHead(status).end();
    });
  });
  const url = await listenLocally(t, server, () => server.closeAllConnections());
  return {
    ...{ url, received },
    mend: () => {
      status = 204;
    },
  };
}

test('by the advanced clock of a sandbox a hold lapses, and evidence stays what it was', async (t) => {
  const { artseal, json, file, freeze, order, service, aheadS, ...sandbox } = await startSandbox(t);
  assert.equal((await json('clock show')).sandbox, undefined);
  const [early, released] = [await file(), await file()];
  const held = await freeze(early);
  const { holdExpiresAt } = await order(held);
  const expiresMs = Date.parse(holdExpiresAt);
  assert.ok(Math.abs(expiresMs - Date.now() - 7 * dayS * 1_000) < 60_000, holdExpiresAt);

  // The event that warns of its end within a day comes first.
  const warned = async () =>
    (await sandbox.call('/api/v1/events?after=0')).events.some(
      ({ type }: { type: string }) => type === 'escrow.hold_expiring',
    );
  assert.match(
    await artseal('sandbox advance 6d --reason demonstration'),
    /^sandbox clock {2}\d{4}-.*\nahead by {7}518400 s \(6 days\)\n$/,
  );
  await eventually('the warning of a hold that ends', limitMs, warned);
  assert.equal(await sandbox.metric('artseal_escrow_holds_ending'), 1);
  assert.equal((await order(held)).state, 'FROZEN');
  assert.equal((await json('sandbox advance 1d')).aheadSeconds, 7 * dayS);
  const closed = await eventually('the lapse of the hold', limitMs, async () => {
    const found = await order(held);
    return found.state === 'CLOSED' && found;
  });
  // The history and the events have the time of the sandbox.
  const at = closed.history.at(-1).at;
  assert.ok(Date.parse(at) >= expiresMs - 1_000, `${at} ${holdExpiresAt}`);
  const events = (await sandbox.call('/api/v1/events?after=0')).events;
  const ofHeld = events.filter(({ escrowId }: { escrowId?: string }) => escrowId === held);
  assert.deepEqual(
    ofHeld.map(({ type }: { type: string }) => type),
    ['escrow.frozen', 'escrow.hold_expiring', 'escrow.closed'],
  );
  assert.equal(ofHeld.at(-1).at, at);

  // Filings and transfers have the real time, which the log has.
  const late = await file();
  const { timestamp } = await sandbox.call(`/api/v1/filing/${late}`);
  assert.ok(Math.abs(Date.parse(timestamp) - Date.now()) < 60_000, timestamp);
  const sold = await freeze(released);
  const { status } = await send(service().publicUrl, sandbox.platform, {
    ...{ method: 'POST', target: `/api/v1/escrow/${sold}/release` },
  });
  assert.equal(status, 200);
  const { records } = (await askProvenance(service(), sandbox.platform, released)).json;
  assert.deepEqual(
    records.map(({ event }: { event: string }) => event),
    ['SUBMITTED', 'TRANSFER'],
  );
  assert.equal(records[1].at, records[0].at);
  for (const filingNo of [early, released, late])
    assert.equal(await sandbox.findNothingWrong(filingNo), '', filingNo);
  assert.ok(Math.abs((await aheadS()) - 7 * dayS) < 60);
  const [entry] = (await artseal('audit-log --json')).split('\n').filter((line) => line.includes('demonstr'));
  const { action, reason, before, after } = JSON.parse(entry ?? '{}');
  assert.deepEqual([action, reason], ['sandbox advance', 'demonstration']);
  assert.deepEqual([before, after], [{ aheadS: 0 }, { aheadS: 6 * dayS }]);
});

test('by the advanced clock of a sandbox the retry of a webhook comes due, signed with the real time', async (t) => {
  const { file, call, json, metric } = await startSandbox(t);
  const endpoint = await startEndpoint(t);
  const eventTypes = ['filing.created'];
  const { webhook, secret } = await call('/api/v1/webhooks', { url: endpoint.url, eventTypes });
  await file();
  const deliveries = async () => (await call(`/api/v1/webhooks/${webhook.webhookId}/deliveries`)).deliveries;
  const attempted = (attempts: number) =>
    eventually(`${attempts} attempts`, limitMs, async () => {
      const [delivery] = await deliveries();
      return delivery?.attempts >= attempts && delivery.status === 'PENDING' && delivery;
    });
  await attempted(1);
  await json('sandbox advance 10s');
  const second = await attempted(2);
  assert.ok((await metric('artseal_webhook_longest_failing_seconds')) >= 10);
  assert.ok(Date.parse(second.nextAttemptAt) - Date.parse(second.lastAttemptAt) >= 299_000);
  assert.equal(endpoint.received.length, 2);
  endpoint.mend();
  await json('sandbox advance 1h');
  await eventually('the delivery', limitMs, async () => (await deliveries())[0].status === 'DELIVERED');
  const { headers, body } = endpoint.received.at(-1) ?? assert.fail();
  assert.equal((await verifyWebhook({ headers, body, secret })).type, 'filing.created');
});

test('an advance survives kill -9 and a restart, and goes only forward, up to ten years', async (t) => {
  const { env, service, restart, artseal, json, aheadS, file, freeze, order } = await startSandbox(t);
  const held = await freeze(await file());
  await artseal('sandbox advance 30d');
  await service().stop('SIGKILL');
  await restart();
  assert.ok(Math.abs((await aheadS()) - 30 * dayS) < 60);
  await eventually('the lapse', limitMs, async () => (await order(held)).state === 'CLOSED');
  const fails = async (line: string, code: number, message: RegExp) =>
    assertOneLine(await runCommand(line.split(' '), env), code, message);
  await fails('sandbox advance 0s', 2, /takes a DURATION from 1s to 3650d, as in 90m, 12h or 7d, not '0s'/);
  await fails('sandbox advance 4000d', 2, /not '4000d'/);
  await fails('sandbox advance week', 2, /not 'week'/);
  await fails('sandbox advance -- -7d', 2, /not '-7d'/);
  await fails('sandbox advance 3621d', 1, /seconds must be at most 312768000: .* and is 2592000 ahead/);
  assert.ok(Math.abs((await aheadS()) - 30 * dayS) < 60);
  assert.equal((await json('sandbox advance 3620d')).aheadSeconds, 3_650 * dayS);
  await file();
  // A stopped folder has the same clock.
  await service().stop();
  await fails('sandbox advance 1s', 1, /seconds must be at most 0/);
  const { code, stderr } = await runCommand(['serve'], { ...env, ...stripeSettings });
  assert.equal(code, 2);
  assert.match(stderr, /ARTSEAL_PAYMENT_PROVIDER must be simulated: the clock of this sandbox was advanced/);
});

test('by the advanced clock of a sandbox the retention of a filing ends, and the log says so', async (t) => {
  const { artseal, json, file, ...sandbox } = await startSandbox(t);
  const filingNo = await file();
  await artseal('sandbox advance 1824d');
  assert.equal((await json('retention purge')).filings, 0);
  await artseal('sandbox advance 5d');
  assert.equal((await json('retention purge --erase')).filings, 1);
  const { status } = await send(sandbox.service().publicUrl, sandbox.platform, {
    target: `/api/v1/filing/${filingNo}`,
  });
  assert.equal(status, 404);
  const later = await file();
  assert.equal(await sandbox.findNothingWrong(later), '');
});

test('the clock of a production, or of a sandbox with a provider that moves money, is not advanced', async (t) => {
  for (const settings of [productionSettings(t), stripeSettings]) {
    const env = { ...settings, ARTSEAL_DATA_DIR: join(temporaryFolder(t), 'data') };
    assert.equal((await runCommand(['init'], env)).code, 0);
    const before = (await runCommand(['clock', 'show', '--json'], env)).stdout;
    const refused = await runCommand(['sandbox', 'advance', '7d'], env);
    assertOneLine(refused, 1, /Only the clock of a sandbox with the simulated payment provider can be/);
    assert.equal(JSON.parse(before).sandbox, undefined);
    assert.doesNotMatch((await runCommand(['clock', 'show', '--json'], env)).stdout, /"sandbox"/);
  }
});
