import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Key_Tier } from '../../../gen/artseal/v1/admin_pb.ts';
import { formRates } from '../../../src/domain/registration.ts';
import { fileArtwork } from '../../support/calls.ts';
import { createManualClock } from '../../support/clock.ts';
import { fileScope } from '../../support/file-scope.ts';
import { startService } from '../../support/service.ts';
import { openTestProvider } from '../../support/simulator.ts';

const clock = createManualClock();
const service = await startService(fileScope, {
  ...{ clock, provider: openTestProvider(fileScope, {}, clock) },
  env: {
    ARTSEAL_ACCESS_FORM: 'yes',
    ARTSEAL_TRUSTED_PROXIES: '127.0.0.1',
    ARTSEAL_PUBLIC_URL: 'https://a.example',
  },
});
const { access } = await service.operator();

const entered = { name: 'Qi 齐', intendedUse: 'ink\r\npaintings', tier: 'STANDARD' };

/** Sends the form from a client address. */
const sendForm = (fields: Readonly<Record<string, string>>, client = '192.0.2.1') =>
  fetch(`${service.publicUrl}/register`, {
    method: 'POST',
    headers: { 'X-Forwarded-For': client },
    body: new URLSearchParams(fields),
  });

const registrations = async () => (await access.listRegistrations({ pageSize: 100 })).registrations;

/** Makes each rate whole again. */
const restRates = () => clock.advance(formRates.network.burst * formRates.network.everyMs);

function assertPage({ headers }: Response): void {
  assert.equal(headers.get('content-type'), 'text/html; charset=utf-8');
  assert.equal(headers.get('cache-control'), 'no-store');
  assert.equal(headers.get('referrer-policy'), 'no-referrer');
  const policy = headers.get('content-security-policy') ?? '';
  assert.match(
    policy,
    /^default-src 'none'; style-src 'sha256-[^']+'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'$/,
  );
}

test('the form is in both languages, and pre-registers a person without an account', async () => {
  const page = await fetch(`${service.publicUrl}/register`);
  assert.equal(page.status, 200);
  assertPage(page);
  const html = await page.text();
  for (const text of ['预先登记', 'Pre-register', 'E-mail address', '电子邮箱', 'action="/register"'])
    assert.ok(html.includes(text), text);
  assert.doesNotMatch(html, /<script/);
  const sent = await sendForm({ ...entered, email: ' Person@example.com ' });
  assert.equal(sent.status, 200);
  assertPage(sent);
  const answer = await sent.text();
  assert.ok(answer.includes('in the order of pre-registration'));
  const [one, ...more] = await registrations();
  assert.deepEqual(more, []);
  const { email, name, intendedUse, byForm, position } = one ?? assert.fail();
  assert.deepEqual(
    [email, name, intendedUse, byForm, position],
    ['Person@example.com', 'Qi 齐', 'ink paintings', true, 1n],
  );
  // The answer for a known address is the same.
  const again = await sendForm({ ...entered, email: 'PERSON@example.com', name: 'somebody else' });
  assert.deepEqual([again.status, await again.text()], [200, answer]);
  assert.deepEqual(await registrations(), [one]);
});

test('a wrong form names field and bound, keeps what was entered, and stores nothing', async () => {
  const before = await registrations();
  const name = `"><script>${'x'.repeat(128)}`;
  const sent = await sendForm({ email: 'a@b', name, intendedUse: '</textarea><b>', tier: 'GOLD' });
  assert.equal(sent.status, 400);
  assertPage(sent);
  const html = await sent.text();
  for (const text of [
    'E-mail address must be an e-mail address such as name@example.com, of at most 254 characters.',
    '姓名或单位名称：须有 1 至 128 个字符',
    'Name of person or company must have 1 to 128 characters.',
    'Wished tier must be TRIAL or STANDARD or ENTERPRISE.',
    'value="a@b"',
    'value="&quot;&gt;&lt;script&gt;xxx',
    '&lt;/textarea&gt;&lt;b&gt;</textarea>',
  ])
    assert.ok(html.includes(text), text);
  assert.doesNotMatch(html, /<script|<b>/);
  for (const email of [
    'a@b.example\r\nBcc: c@d.example',
    'a b@c.example',
    'a@b@c.example',
    '"a"@b.example',
    '',
  ])
    assert.equal((await sendForm({ ...entered, email })).status, 400, email);
  assert.deepEqual(await registrations(), before);
});

test('the form takes its own media type, methods and size', async () => {
  const json = await fetch(`${service.publicUrl}/register`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ ...entered, email: 'json@example.com' }),
  });
  assert.deepEqual(
    [json.status, ((await json.json()) as { code: string }).code],
    [415, 'UNSUPPORTED_MEDIA_TYPE'],
  );
  const removed = await fetch(`${service.publicUrl}/register`, { method: 'DELETE' });
  assert.deepEqual([removed.status, removed.headers.get('allow')], [405, 'GET, HEAD, POST']);
  const large = await sendForm({ ...entered, email: 'large@example.com', name: 'x'.repeat(100_000) });
  assert.equal(large.status, 413);
});

test('a form that is off is an unknown path', async (t) => {
  const off = await startService(t);
  const ask = async (path: string, method: string) => {
    const response = await fetch(`${off.publicUrl}${path}`, { method });
    return [response.status, ((await response.json()) as { code: string }).code];
  };
  for (const method of ['GET', 'POST'])
    assert.deepEqual(await ask('/register', method), await ask('/no-such-path', method));
});

/** Approves a new registration. Returns its link on this listener. */
async function newLink(email: string, name: string) {
  const { registration } = await access.preRegister({ email, name: 'Qi', intendedUse: 'art', tier: 1 });
  const registrationId = registration?.registrationId ?? '';
  const { link } = await access.approveRegistration({ registrationId, name, tier: 2, expiresInSeconds: 60 });
  assert.match(link, /^https:\/\/a\.example\/access\/[\w-]{43}$/);
  return { registrationId, url: `${service.publicUrl}${new URL(link).pathname}` };
}

test('a link issues one key, only when its button is pressed', async () => {
  const { url, registrationId } = await newLink('link@example.com', 'house <b>');
  for (const method of ['GET', 'HEAD', 'GET']) {
    const opened = await fetch(url, { method });
    assert.equal(opened.status, 200);
    assertPage(opened);
    if (method === 'GET') assert.match(await opened.text(), /house &lt;b&gt;.*<form method="post">/s);
  }
  const presses = await Promise.all([1, 2, 3].map(() => fetch(url, { method: 'POST' })));
  const [pressed, ...others] = presses.toSorted((one, other) => one.status - other.status);
  assert.equal(pressed?.status, 200);
  assertPage(pressed ?? assert.fail());
  const html = await pressed.text();
  const [apiKey = '', apiSecret = ''] = html.match(/\b[as]k_sandbox_\w+/g) ?? [];
  assert.equal((await fileArtwork(service, { apiKey, apiSecret })).status, 200);
  const unknown = await fetch(`${service.publicUrl}/access/${'A'.repeat(43)}`, { method: 'POST' });
  const unknownPage = await unknown.text();
  assert.equal(unknown.status, 404);
  for (const response of [...others, await fetch(url), await fetch(`${service.publicUrl}/access/short`)]) {
    assert.equal(response.status, 404);
    assertPage(response);
    assert.equal(await response.text(), unknownPage);
  }
  const { keys } = await (await service.operator()).admin.listKeys({ caller: 'house <b>' });
  assert.deepEqual(
    keys.map((key) => key.apiKey),
    [apiKey],
  );
  const log = service.logLines.join('');
  const token = url.slice(url.lastIndexOf('/') + 1);
  assert.ok(log.includes('"operation":"/access"'));
  for (const secret of [token, apiSecret]) assert.ok(!log.includes(secret));
  const claimed = (await registrations()).find((one) => one.registrationId === registrationId);
  assert.notEqual(claimed?.claimedAt, '');
});

test('a link ends at its time, and a replay of its approval does not show it again', async () => {
  const { url } = await newLink('late@example.com', 'late house');
  clock.advance(60_000);
  assert.equal((await fetch(url)).status, 404);
  assert.equal((await fetch(url, { method: 'POST' })).status, 404);
  const { registration } = await access.preRegister({
    email: 'r@example.com',
    name: 'Qi',
    intendedUse: 'art',
    tier: 1,
  });
  const request = {
    registrationId: registration?.registrationId ?? '',
    name: 'replayed house',
    tier: Key_Tier.TRIAL,
  };
  const options = { headers: { 'Idempotency-Key': 'approve-1' } };
  const first = await access.approveRegistration(request, options);
  const replay = await access.approveRegistration(request, options);
  assert.notEqual(first.link, '');
  assert.deepEqual([replay.link, replay.registration], ['', first.registration]);
});

test('one network and all networks together are limited, and each recovers', async () => {
  restRates();
  let nth = 0;
  const from = async (client: string) => {
    nth += 1;
    const sent = await sendForm({ ...entered, email: `rate-${nth}@example.com` }, client);
    return { status: sent.status, retryAfter: sent.headers.get('retry-after'), html: await sent.text() };
  };
  const { network, total } = formRates;
  for (let sent = 0; sent < network.burst; sent += 1)
    assert.equal((await from(`192.0.2.${sent}`)).status, 200);
  const limited = await from('192.0.2.200');
  assert.deepEqual([limited.status, limited.retryAfter], [429, String(network.everyMs / 1_000)]);
  assert.ok(limited.html.includes('Try again in 6 minutes'));
  assert.ok(limited.html.includes(`value="rate-${nth}@example.com"`));
  assert.equal((await from('192.0.3.1')).status, 200);
  for (let sent = 0; sent < network.burst; sent += 1)
    assert.equal((await from(`2001:db8:1:${sent}::1`)).status, 200);
  assert.equal((await from('2001:db8:1:ffff::1')).status, 429);
  assert.equal((await from('2001:db8:2::1')).status, 200);
  for (let sent = 2 * network.burst + 2; sent < total.burst; sent += 1)
    assert.equal((await from(`10.0.${sent}.1`)).status, 200);
  assert.equal((await from('10.1.0.1')).status, 429);
  clock.advance(total.everyMs);
  assert.equal((await from('10.1.0.1')).status, 200);
  assert.equal((await from('10.1.1.1')).status, 429);
  clock.advance(network.everyMs);
  assert.equal((await from('192.0.2.200')).status, 200);
});
