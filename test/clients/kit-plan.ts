import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import type { ApiCredentials } from '../../src/client/sign.ts';
import { evidenceHash } from '../../src/domain/filing.ts';
import { fileArtwork, getEvidence } from '../support/calls.ts';
import { sendEndlessly } from '../support/local-server.ts';
import { escrowTerms } from '../support/samples.ts';
import type { TestService } from '../support/service.ts';
import { send } from '../support/signed-request.ts';
import { publishedCases, webhookCases } from '../support/webhook-cases.ts';
import type { Access, KitError, KitProgram } from './kit-program.ts';
import { type Arrival, type Fault, first, respond, startProxy } from './proxy.ts';

/** A kit under test: its program, and a platform that it calls as. */
export interface KitTest {
  readonly program: KitProgram;
  readonly service: TestService;
  readonly platform: ApiCredentials;
}

const artwork = {
  author: '齐白石 "Qi" 🖌',
  era: '1947',
  size: '68 × 136 cm',
  material: 'ink & colour',
  condition: 'good',
  price: Number.MAX_SAFE_INTEGER,
  attachments: [{ name: '正面 & "back".jpg', sha256: 'ab'.repeat(32) }],
};

/** A limit for calls that must give up early. A kit that waits makes them take a minute or more. */
const earlyMs = 30_000;

const webhookUrl = 'https://gallery.example/hooks?of=sales';

/** Calls through a proxy with a fault. Resolves with the calls of the kit and what arrived at the proxy. */
async function through(t: TestContext, { program, service, platform }: KitTest, fault?: Fault) {
  const { apiKey, apiSecret } = platform;
  const { url, arrivals, extended } = await startProxy(t, service.publicUrl, fault);
  const call = (step: string, values: object = {}, more: Partial<Access> = {}) =>
    program.run(step, { client: { url, apiKey, apiSecret, ...more }, ...values });
  /** The result of a call that must succeed. */
  const ok = async (...words: Parameters<typeof call>) => {
    const { ok: isOk, result, error } = await call(...words);
    assert.ok(isOk, `${words[0]}: ${JSON.stringify(error)}`);
    return result;
  };
  /** The error of a call that must fail. */
  const fails = async (...words: Parameters<typeof call>): Promise<KitError> => {
    const { error, result } = await call(...words);
    assert.ok(error, `${words[0]}: ${JSON.stringify(result)}`);
    return error;
  };
  return { url, arrivals, extended, ok, fails };
}

/** Asserts that a request was tried so often, each time with an own nonce and, if it writes, with the same key. */
function assertTries(arrivals: readonly Arrival[], count: number): void {
  assert.equal(arrivals.length, count);
  const valuesOf = (name: string) => new Set(arrivals.map(({ headers }) => headers[name]));
  assert.equal(valuesOf('x-nonce').size, count);
  assert.equal(valuesOf('x-signature').size, count);
  const [key, ...others] = valuesOf('idempotency-key');
  assert.deepEqual(others, []);
  if (arrivals[0]?.method === 'GET') return;
  assert.match(String(key), /^[\x21-\x7e]{16,255}$/);
}

/** A whole sale. The kit neither loses nor changes a value, and accepts members of later releases. */
async function sells(t: TestContext, kit: KitTest) {
  const { publicUrl } = kit.service;
  const { arrivals, extended, ok, fails } = await through(t, kit);
  const receipt = await ok('file', { artwork });
  const { filingNo } = receipt;
  const filing = await ok('get', { filingNo });
  const target = `/api/v1/filing/${filingNo}`;
  const { json: stored } = await send(publicUrl, kit.platform, { method: 'GET', target });
  assert.deepEqual({ ...filing, laterMember: undefined }, { ...stored, laterMember: undefined });
  assert.deepEqual({ ...filing, ...receipt, ...artwork }, filing);
  assert.equal(filing.hash, evidenceHash({ ...filing, price: BigInt(filing.price) }));
  const order = { ...escrowTerms(filingNo), amount: artwork.price };
  const opened = await ok('escrow', { order });
  assert.equal(opened.state, 'FROZEN');
  const { escrowId } = opened;
  assert.equal((await ok('release', { escrowId })).state, 'RELEASED');
  const tries = arrivals.length;
  const again = await fails('release', { escrowId });
  assert.deepEqual([again.code, again.status], ['ESCROW_STATE_CONFLICT', 409]);
  assert.equal(arrivals.length, tries + 1, 'a conflict is not retried');
  const { records } = await ok('provenance', { filingNo });
  assert.deepEqual(
    records.map(({ event }: { event: string }) => event),
    ['SUBMITTED', 'TRANSFER'],
  );
  assert.deepEqual(extended, ['getFiling', 'releaseEscrow']);
  assert.match(String(arrivals[0]?.headers['user-agent']), /^artseal-[a-z]+\/\d+\.\d+\.\d+\S*$/);
}

async function managesWebhooks(t: TestContext, kit: KitTest) {
  const { ok } = await through(t, kit);
  const endpoint = { url: webhookUrl, eventTypes: ['escrow.released'] };
  const { webhook, secret } = await ok('addWebhook', endpoint);
  const { webhookId, url, eventTypes, status } = webhook;
  assert.deepEqual([{ url, eventTypes }, status], [endpoint, 'ENABLED']);
  assert.match(secret, /^whsec_/);
  assert.equal((await ok('editWebhook', { webhookId, status: 'DISABLED' })).status, 'DISABLED');
  await ok('removeWebhook', { webhookId });
  const target = '/api/v1/webhooks';
  const { json } = await send(kit.service.publicUrl, kit.platform, { method: 'GET', target });
  assert.deepEqual(json.webhooks, []);
}

/** A filing through faults that end: there is one filing in the end, and the result is that of it. */
async function survivesFaults(t: TestContext, kit: KitTest) {
  const again = (status: number, code: string): Fault => {
    return (exchange) => respond(exchange, status, { 'Retry-After': '1' }, { code });
  };
  const faults: Readonly<Record<string, Fault[]>> = {
    'a lost response': [
      async ({ forward, response }) => {
        await forward();
        response.destroy();
      },
    ],
    'a lost request': [({ response }) => response.destroy()],
    '503 UNAVAILABLE': [again(503, 'UNAVAILABLE')],
    '429 RATE_LIMITED': [again(429, 'RATE_LIMITED')],
    '409 IDEMPOTENCY_IN_PROGRESS': [again(409, 'IDEMPOTENCY_IN_PROGRESS')],
    'a proxy without a service': [(exchange) => respond(exchange, 502, {}, '<h1>Bad gateway</h1>')],
    'three faults': [
      ({ response }) => response.destroy(),
      (exchange) => respond(exchange, 500, {}, { code: 'INTERNAL' }),
      (exchange) => respond(exchange, 504, {}, { code: 'TIMED_OUT' }),
    ],
  };
  for (const [name, list] of Object.entries(faults)) {
    await t.test(name, async (t) => {
      const before = await filingNumbers(kit);
      const { arrivals, ok } = await through(t, kit, first(...list));
      const { filingNo } = await ok('file', { artwork });
      assertTries(arrivals, list.length + 1);
      assert.deepEqual(await filingNumbers(kit), [filingNo, ...before]);
    });
  }
  await t.test('a key of the caller', async (t) => {
    const { arrivals, ok } = await through(t, kit);
    const named = { artwork, idempotencyKey: 'sale-1-of-today' };
    assert.deepEqual(await ok('file', named), await ok('file', named));
    assert.equal(arrivals[1]?.headers['idempotency-key'], named.idempotencyKey);
  });
}

/** The newest filings of the platform, as the service lists them. */
async function filingNumbers({ service, platform }: KitTest): Promise<string[]> {
  const { json } = await send(service.publicUrl, platform, { method: 'GET', target: '/api/v1/filing' });
  return json.filings.map(({ filingNo }: { filingNo: string }) => filingNo);
}

/** Faults that do not end: the kit gives up. */
async function givesUp(t: TestContext, kit: KitTest) {
  const elsewhere = await startProxy(t, kit.service.publicUrl);
  const later = { 'Retry-After': '86400' };
  const moved = { Location: `${elsewhere.url}/api/v1/filing` };
  const cases: readonly [string, Fault, tries: number, code: string, status: number][] = [
    ['503 for ever', (it) => respond(it, 503, {}, { code: 'UNAVAILABLE' }), 4, 'UNAVAILABLE', 503],
    ['HTML for ever', (it) => respond(it, 502, {}, '<h1>Bad gateway</h1>'), 4, 'BAD_RESPONSE', 502],
    ['no response', ({ response }) => response.destroy(), 4, 'NO_RESPONSE', 0],
    [
      'a pause of a day',
      (it) => respond(it, 429, later, { code: 'QUOTA_EXCEEDED' }),
      1,
      'QUOTA_EXCEEDED',
      429,
    ],
    ['200 with HTML', (it) => respond(it, 200, {}, '<h1>Log in</h1>'), 1, 'BAD_RESPONSE', 200],
    ['a body without an end', ({ response }) => sendEndlessly(response), 1, 'BAD_RESPONSE', 200],
    ['a redirect', (it) => respond(it, 307, moved, ''), 1, 'BAD_RESPONSE', 307],
    ['an error that is no object', (it) => respond(it, 400, {}, '["code"]'), 1, 'BAD_RESPONSE', 400],
  ];
  for (const [name, fault, tries, code, status] of cases) {
    await t.test(name, async (t) => {
      const { arrivals, fails } = await through(t, kit, fault);
      const started = performance.now();
      const error = await fails('file', { artwork });
      assert.deepEqual([error.code, error.status], [code, status], error.message);
      assertTries(arrivals, tries);
      assert.ok(performance.now() - started < earlyMs);
    });
  }
  assert.deepEqual(elsewhere.arrivals, [], 'a redirect is not followed');

  const slow: Readonly<Record<string, Fault>> = { silence: () => {}, 'a body that drips': drip };
  for (const [name, fault] of Object.entries(slow)) {
    await t.test(name, async (t) => {
      const { arrivals, fails } = await through(t, kit, fault);
      const started = performance.now();
      assert.equal((await fails('file', { artwork }, { timeoutS: 2 })).code, 'NO_RESPONSE');
      assert.ok(performance.now() - started < earlyMs);
      assertTries(arrivals, arrivals.length);
    });
  }
}

/** Sends a byte now and then, without an end. */
const drip: Fault = ({ response }) => {
  response.writeHead(200, { 'Content-Type': 'application/json' });
  const timer = setInterval(() => response.write(' '), 100);
  response.on('close', () => clearInterval(timer));
};

async function followsTheClock(t: TestContext, kit: KitTest) {
  for (const clockOffsetS of [-600, 600]) {
    await t.test(`${clockOffsetS} seconds`, async (t) => {
      const { arrivals, ok } = await through(t, kit);
      const { filingNo } = await ok('file', { artwork }, { clockOffsetS });
      assertTries(arrivals, 2);
      await ok('get', { filingNo }, { clockOffsetS });
      assert.equal(arrivals.length, 3, 'the difference is kept');
    });
  }
  const expired = (dateMs: number): Fault => {
    const headers = { Date: new Date(dateMs).toUTCString() };
    return (exchange) => respond(exchange, 401, headers, { code: 'TIMESTAMP_EXPIRED' });
  };
  await t.test('a network that can set the clock', async (t) => {
    const { url, arrivals, fails } = await through(t, kit);
    // An address of this machine that looks like one of another.
    const elsewhere = { url: url.replace('127.0.0.1', '0.0.0.0'), clockOffsetS: 600 };
    assert.equal((await fails('file', { artwork }, elsewhere)).code, 'TIMESTAMP_EXPIRED');
    assertTries(arrivals, 1);
  });
  const twoDaysMs = 2 * 86_400_000;
  for (const [name, fault, tries] of [
    ['a server that accepts no time', expired(Date.now()), 2],
    ['a server two days ahead', expired(Date.now() + twoDaysMs), 1],
  ] as const) {
    await t.test(name, async (t) => {
      const { arrivals, fails } = await through(t, kit, fault);
      assert.equal((await fails('file', { artwork })).code, 'TIMESTAMP_EXPIRED');
      assertTries(arrivals, tries);
    });
  }
}

async function reportsErrors(t: TestContext, kit: KitTest) {
  const { url, arrivals, fails } = await through(t, kit);
  const filingNo = 'AS-2000-000001';
  const missing = await fails('get', { filingNo });
  assert.deepEqual([missing.code, missing.status], ['FILING_NOT_FOUND', 404]);
  assert.match(missing.message, /AS-2000-000001|filing/i);
  assert.match(String(missing.requestId), /^[0-9a-f]{8}-[0-9a-f-]{27}$/);
  assert.equal(missing.help, `${url}/docs/errors#FILING_NOT_FOUND`);
  assert.equal(arrivals.length, 1);
  const apiSecret = `${kit.platform.apiSecret.slice(0, -1)}!`;
  const forged = await fails('file', { artwork }, { apiSecret });
  assert.deepEqual([forged.code, forged.status], ['SIGNATURE_INVALID', 401]);
  assert.equal(arrivals.length, 2, 'a wrong secret is not retried');
  assert.ok(!JSON.stringify(forged).includes(apiSecret));
}

/** What cannot be sent as it is meant is refused, and no secret is shown. */
async function isCareful(t: TestContext, kit: KitTest) {
  const { arrivals, ok, fails } = await through(t, kit);
  for (const filingNo of ['', '.', '..'])
    assert.equal((await fails('get', { filingNo })).code, 'ARGUMENT', `filingNo ${filingNo}`);
  for (const idempotencyKey of ['a\r\nX-Api-Key: b', 'é'])
    assert.equal((await fails('file', { artwork, idempotencyKey })).code, 'ARGUMENT', idempotencyKey);
  assert.equal(arrivals.length, 0);
  assert.equal((await fails('get', { filingNo: 'a/../b?c#d' })).status, 400);
  assert.equal(arrivals[0]?.target, '/api/v1/filing/a%2F..%2Fb%3Fc%23d');
  assert.ok(!(await ok('print')).includes(kit.platform.apiSecret));
}

/** Members, and values of enumerations, that a later release may return. */
async function acceptsLaterValues(t: TestContext, kit: KitTest) {
  const { filingNo } = await (await through(t, kit)).ok('file', { artwork });
  const order = { ...escrowTerms(filingNo), amount: artwork.price };
  const { ok } = await through(t, kit, async (exchange) => {
    const { json } = await send(kit.service.publicUrl, kit.platform, {
      method: 'POST',
      target: '/api/v1/escrow',
      body: JSON.stringify(order),
    });
    respond(exchange, 200, {}, JSON.stringify({ ...json, state: 'UNDER_OATH' }));
  });
  const opened = await ok('escrow', { order });
  assert.equal(opened.amount, artwork.price);
  assert.ok(['UNDER_OATH', undefined, null].includes(opened.state));
}

async function pages(t: TestContext, { program, service }: KitTest) {
  const platform = await service.platform();
  const { arrivals, ok } = await through(t, { program, service, platform });
  const filed: string[] = [];
  for (let count = 0; count < 120; count += 1)
    filed.unshift((await fileArtwork(service, platform)).json.filingNo);
  assert.deepEqual(await ok('filings', { pageSize: 50 }), filed);
  assert.equal(arrivals.length, 3);
  assert.deepEqual(await ok('filings', { pageSize: 5, max: 10 }), filed.slice(0, 10));
  assert.ok(arrivals.length <= 6, 'pages are read when the loop gets there');

  const orders: string[] = [];
  for (const filingNo of filed.slice(0, 3))
    orders.unshift((await ok('escrow', { order: escrowTerms(filingNo) })).escrowId);
  assert.deepEqual(await ok('orders', { pageSize: 1, state: 'FROZEN' }), orders);
  assert.deepEqual(await ok('orders', { pageSize: 1, state: 'CLOSED' }), []);

  const sequences = Array.from({ length: 123 }, (_, index) => index + 1);
  assert.deepEqual(await ok('events', { after: 0 }), sequences);
  assert.deepEqual(await ok('events', { after: 121 }), sequences.slice(121));
}

async function verifiesWebhooks(_: TestContext, { program }: KitTest) {
  const cases = webhookCases(1_795_222_800);
  const others = webhookCases(1_795_222_800);
  for (const [index, { name, secret, apiError, ...webhook }] of [...publishedCases, ...cases].entries()) {
    const result = await program.run('webhook', { secrets: [secret], ...webhook });
    assert.equal(result.ok, apiError === undefined, `${name}: ${JSON.stringify(result)}`);
    if (result.ok && index >= publishedCases.length)
      assert.equal(result.result.type, 'escrow.released', name);
    const another = others[0]?.secret;
    const both = await program.run('webhook', { secrets: [another, secret], ...webhook });
    assert.equal(both.ok, apiError === undefined, `${name}, with two secrets: ${JSON.stringify(both)}`);
  }
}

/** Optional: a kit without it says so. */
async function verifiesEvidence(t: TestContext, { program, service, platform }: KitTest) {
  const { json: filed } = await fileArtwork(service, platform);
  const { text: bundle, json } = await getEvidence(service, platform, filed.filingNo);
  const keyOf = async (url: string) => (await fetch(`${url}/log/vkey`)).text();
  const vkey = await keyOf(service.publicUrl);
  const good = await program.run('evidence', { bundle, vkey });
  if (good.unsupported) return t.skip('the kit does not verify evidence');
  assert.ok(good.ok, JSON.stringify(good));
  assert.equal(good.result.filingNo, filed.filingNo);
  const [name, id, key = ''] = vkey.trim().split('+');
  const forged: readonly [string, object][] = [
    [
      'another record',
      {
        bundle: JSON.stringify({ ...json, record: json.record.replace('"version":2', '"version":3') }),
        vkey,
      },
    ],
    [
      'another author',
      {
        bundle: JSON.stringify({ ...json, disclosed: { ...json.disclosed, author: json.disclosed.era } }),
        vkey,
      },
    ],
    [
      'another leaf',
      { bundle: JSON.stringify({ ...json, leaf: json.leaf.replace('FILING', 'FILED') }), vkey },
    ],
    ['another proof', { bundle: JSON.stringify({ ...json, proof: json.proof.replace(/\d+/, '7') }), vkey }],
    ['no bundle', { bundle: '{}', vkey }],
    ['a damaged key', { bundle, vkey: `${name}+${id}+${key.slice(0, -4)}AAA=` }],
  ];
  for (const [what, values] of forged) assert.equal((await program.run('evidence', values)).ok, false, what);
}

/** What every kit does. */
export const plan: Readonly<Record<string, (t: TestContext, kit: KitTest) => Promise<void>>> = {
  'makes a sale and loses no value': sells,
  'manages webhook endpoints': managesWebhooks,
  'retries safely': survivesFaults,
  'gives up': givesUp,
  'follows the clock of the server': followsTheClock,
  'reports errors': reportsErrors,
  'refuses what it cannot send, and shows no secret': isCareful,
  'accepts values of later releases': acceptsLaterValues,
  'iterates over lists': pages,
  'verifies webhooks': verifiesWebhooks,
  'verifies evidence': verifiesEvidence,
};
