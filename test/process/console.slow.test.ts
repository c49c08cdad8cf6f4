import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { test } from 'node:test';
import { Key_Tier, Token_Status } from '../../gen/artseal/v1/admin_pb.ts';
import { Delivery_Status } from '../../gen/artseal/v1/webhook_pb.ts';
import { artsealWith } from '../support/artseal.ts';
import { fileArtwork, openEscrow } from '../support/calls.ts';
import { type Browser, type BrowserPage, startChromium } from '../support/chromium.ts';
import { createManualClock } from '../support/clock.ts';
import { eventually } from '../support/eventually.ts';
import { fileScope } from '../support/file-scope.ts';
import { skipUnlessInstalled } from '../support/installed.ts';
import { listenLocally } from '../support/local-server.ts';
import { artwork } from '../support/samples.ts';
import { startService } from '../support/service.ts';
import { send } from '../support/signed-request.ts';
import { openTestProvider } from '../support/simulator.ts';
import { skipUnlessMailServer, startSmtpServer } from '../support/smtp-server.ts';

const skip = skipUnlessInstalled('chromium');
const provider = openTestProvider(fileScope);
const service = await startService(fileScope, { provider });
const consoleUrl = `${service.internalUrl}/console`;
const chromium = skip === false ? await startChromium(fileScope) : undefined;
const axe = readFileSync(
  join(import.meta.dirname, '..', '..', 'node_modules', 'axe-core', 'axe.min.js'),
  'utf8',
);
const platform = await service.platform();
const attachments = [{ name: 'front.jpg', sha256: 'ab'.repeat(32) }];
const body = JSON.stringify({ ...artwork, attachments });
const { filingNo } = (await fileArtwork(service, platform, { body })).json;
const { escrowId } = (await openEscrow(service, platform, filingNo)).json;

const quoted = JSON.stringify;
const button = (text: string, within = 'document') =>
  `[...(${within}?.querySelectorAll('button') ?? [])].find(({ textContent }) => textContent === ${quoted(text)})`;
const dialog = 'document.querySelector("dialog[open]")';

/** What an operator does in the console. */
function operator(page: BrowserPage) {
  const shows = (text: string, selector = '#app') =>
    page.until(`document.querySelector(${quoted(selector)})?.innerText.includes(${quoted(text)}) === true`);
  const press = async (text: string, within?: string) => {
    await page.until(`${button(text, within)}?.disabled === false`);
    // As a pointer does, which also moves the focus.
    await page.value(`${button(text, within)}.focus(), ${button(text, within)}.click()`);
  };
  const type = async (text: string, selector: string) => {
    await page.until(`document.querySelector(${quoted(selector)}) !== null`);
    await page.value(`document.querySelector(${quoted(selector)}).focus()`);
    await page.send('Input.insertText', { text });
  };
  return {
    ...{ page, shows, press, type },
    /** Opens a view, whose heading then has this text. */
    goTo: async (hash: string, heading: string) => {
      await page.value(`location.hash = ${quoted(hash)}`);
      await shows(heading, 'h1');
    },
    /** Fills in the dialog that is open, and makes its change. */
    confirm: async (label: string, fields: Readonly<Record<string, string>>) => {
      for (const [name, text] of Object.entries(fields)) await type(text, `dialog[open] [name=${name}]`);
      await press(label, dialog);
    },
    /** Closes the dialog that shows a secret, and returns what it shows. */
    secrets: async () => {
      await page.until(`${dialog}?.querySelector('.secret') != null`);
      const secrets = await page.value<string[]>(
        `[...${dialog}.querySelectorAll('.secret input')].map(({ value }) => value)`,
      );
      await press('Close', dialog);
      return secrets;
    },
    dialogClosed: () => page.until('document.querySelector("dialog") === null'),
    buttons: () =>
      page.value<string[]>('[...document.querySelectorAll("button")].map(({ textContent }) => textContent)'),
    text: () => page.value<string>('document.body.innerText'),
  };
}

async function open(url = consoleUrl) {
  return operator(await (chromium as Browser).open(url));
}

/** The console, signed in with a token. */
async function openedWith(token: string) {
  const person = await open();
  await person.type(token, '#token');
  await person.press('Sign in');
  await person.page.until(`${button('Sign out')} !== undefined`);
  return person;
}

const openedByOperator = async () => openedWith(await service.token(true));

/** Asserts that the page called only its own server, and that nothing broke its policy. */
function assertQuiet({ requests, complaints }: BrowserPage): void {
  const origin = new URL(consoleUrl).origin;
  assert.deepEqual(
    requests.filter((url) => !url.startsWith(`${origin}/`) && !url.startsWith('data:')),
    [],
  );
  assert.deepEqual(complaints, []);
}

test('an operator creates a platform, whose key then signs calls, and rotates it', { skip }, async () => {
  const person = await openedByOperator();
  await person.goTo('#/platforms', 'Platforms');
  await person.press('Create platform');
  await person.confirm('Create platform', { name: 'x', quota: '1e5', reason: 'x' });
  await person.shows('NOT_SENT', 'dialog[open]');
  await person.press('Cancel', dialog);
  await person.dialogClosed();
  await person.press('Create platform');
  await person.confirm('Create platform', { name: 'Gallery <b>One</b>', reason: 'contract 7' });
  const [apiKey = '', apiSecret = ''] = await person.secrets();
  const credentials = { apiKey, apiSecret };
  assert.equal((await fileArtwork(service, credentials)).status, 200);

  await person.shows('Gallery <b>One</b>', 'h1');
  await person.shows(apiKey);
  assert.doesNotMatch(await person.text(), new RegExp(apiSecret));
  await person.press('Suspend');
  await person.confirm('Suspend', { reason: 'leaked' });
  await person.dialogClosed();
  await person.shows('SUSPENDED');
  assert.equal((await fileArtwork(service, credentials)).status, 403);

  await person.goTo('#/audit', 'Audit log');
  await person.shows('leaked');
  await person.shows('contract 7');
  assertQuiet(person.page);
});

test('an operator approves a pre-registered person, whose link issues a key, and sends the notices', {
  skip: skip || skipUnlessMailServer(),
}, async (t) => {
  const mailServer = await startSmtpServer(t);
  const desk = await startService(t, {
    env: { ARTSEAL_SMTP_URL: mailServer.url, ARTSEAL_MAIL_FROM: 'registry@registry.example' },
  });
  const person = await open(`${desk.internalUrl}/console`);
  await person.type(await desk.token(true), '#token');
  await person.press('Sign in');
  await person.shows('Overview', 'h1');
  await person.goTo('#/access', 'Access');
  for (const [nth, name] of ['<b>Qi</b>', 'Ren'].entries()) {
    await person.press('Add registration');
    const texts = {
      email: `person-${nth}@example.com`,
      name,
      intendedUse: 'ink paintings',
      reason: 'by letter',
    };
    await person.confirm('Add registration', texts);
    await person.dialogClosed();
    await person.shows(`person-${nth}@example.com`, 'tbody');
  }
  await person.shows('<b>Qi</b>', 'tbody');
  await person.press('Set appointment');
  await person.page.until(`${dialog}?.querySelector('[name=at]') != null`);
  await person.page.value(`${dialog}.querySelector('[name=at]').value = '2099-01-01T09:00'`);
  await person.confirm('Set appointment', { reason: 'by telephone' });
  await person.dialogClosed();
  await person.shows('Change appointment', 'tbody');
  await person.shows('2099', 'tbody');

  await person.press('Approve');
  await person.confirm('Approve', { reason: 'contract 8' });
  const [link = ''] = await person.secrets();
  await person.shows('link until', 'tbody');
  const issued = await fetch(`${desk.publicUrl}${new URL(link).pathname}`, { method: 'POST' });
  const [apiKey = '', apiSecret = ''] = (await issued.text()).match(/\b[as]k_sandbox_\w+/g) ?? [];
  assert.equal((await fileArtwork(desk, { apiKey, apiSecret })).status, 200);

  await person.press('Send notices');
  await person.confirm('Send notices', { reason: 'self-service is open' });
  await person.shows('SENT: 2', 'dialog[open]');
  await person.press('Close', dialog);
  await person.shows('key issued', 'tbody');
  await person.shows('SENT', 'tbody');
  assert.deepEqual(
    mailServer.mails().map(({ to }) => to),
    ['person-0@example.com', 'person-1@example.com'],
  );
  assert.deepEqual(person.page.complaints, []);
});

test('an operator decides an order in review', { skip }, async () => {
  const { filingNo: disputed } = (await fileArtwork(service, platform)).json;
  provider.report((_, payment) => (payment.status === 'HELD' ? { ...payment, amount: 1n } : payment));
  await openEscrow(service, platform, disputed);
  const { review } = await service.operator();
  const order = await eventually('the review', 60_000, async () => {
    const { orders } = await review.listOrders({ needsReview: true });
    return orders[0]?.escrow;
  });
  const person = await openedByOperator();
  await person.goTo('#/orders/review', 'Orders');
  await person.shows('the provider says HELD 1');
  await person.page.value(
    `[...document.querySelectorAll('a')].find((a) => a.textContent === ${quoted(order.escrowId)}).click()`,
  );
  await person.shows('This order waits for your decision');
  provider.report((_, payment) => payment);
  await person.press('Return the money');
  // Without a reason, the browser does not send the form.
  await person.press('Return the money', dialog);
  assert.equal(await person.page.value(`${dialog}.querySelector(':invalid[name=reason]') !== null`), true);
  await person.confirm('Return the money', { reason: 'wrong amount' });
  await person.dialogClosed();
  await person.shows('CLOSED');
  assert.equal((await review.listOrders({ escrowId: order.escrowId })).orders[0]?.review, undefined);
  assertQuiet(person.page);
});

test('a move that the server rejects shows code, message and request id, and can be cancelled', {
  skip,
}, async () => {
  const { filingNo: sold } = (await fileArtwork(service, platform)).json;
  const { escrowId: id } = (await openEscrow(service, platform, sold)).json;
  const person = await openedByOperator();
  await person.goTo(`#/orders/${id}`, id);
  await person.press('Release');
  // Meanwhile the platform releases it.
  const released = await send(service.publicUrl, platform, {
    method: 'POST',
    target: `/api/v1/escrow/${id}/release`,
  });
  assert.equal(released.status, 200);
  await person.confirm('Release', {});
  await person.shows('ESCROW_STATE_CONFLICT', 'dialog[open]');
  await person.shows('only a FROZEN order can be released', 'dialog[open]');
  await person.shows('request 01', 'dialog[open]');
  await person.press('Cancel', dialog);
  await person.dialogClosed();
  assert.equal(await person.page.value('document.activeElement.textContent'), 'Release');
});

test('an operator redelivers a webhook', { skip }, async (t) => {
  const bodies: string[] = [];
  const receiver = createServer(async (request, response) => {
    bodies.push(Buffer.concat(await Array.fromAsync(request)).toString());
    response.writeHead(204).end();
  });
  const url = await listenLocally(t, receiver, () => receiver.closeAllConnections());
  const system = await service.clients({ scopes: ['read', 'file', 'webhook'] });
  const webhookId = (await system.webhooks.createWebhook({ url })).webhook?.webhookId ?? '';
  const { filingNo: filed } = await system.filings.createFiling({ ...artwork, price: 1n });
  await eventually('the delivery', 60_000, async () => {
    const { deliveries } = await system.webhooks.listDeliveries({ webhookId });
    return deliveries[0]?.status === Delivery_Status.DELIVERED;
  });
  const person = await openedByOperator();
  await person.goTo(`#/webhooks/${webhookId}`, new URL(url).origin);
  await person.shows('DELIVERED');
  await person.press('Redeliver');
  await person.confirm('Redeliver', { reason: 'their database was restored' });
  await person.dialogClosed();
  await eventually('the second delivery', 60_000, () => bodies.length === 2);
  assert.ok(bodies.every((body) => body.includes(filed)));
  await person.press('Disable');
  await person.confirm('Disable', { reason: 'moved' });
  await person.shows('DISABLED');
  await person.goTo('#/webhooks/disabled', 'Webhooks');
  await person.shows(new URL(url).origin, 'tbody');
  await person.goTo('#/webhooks/failing', 'Webhooks');
  await person.shows('There is no such endpoint.');
  assertQuiet(person.page);
});

test('a token that the server does not know is rejected, and nothing is kept', { skip }, async () => {
  const person = await open();
  await person.type('it_sandbox_wrong', '#token');
  await person.press('Sign in');
  await person.shows('The server does not accept this token.');
  await person.shows('AUTH_HEADER_INVALID · request 01');
  assert.equal(await person.page.value('sessionStorage.length'), 0);
  assert.equal(await person.page.value('localStorage.length'), 0);
});

test('a session that ends keeps its place, and a reload keeps the session', { skip }, async () => {
  const { stored, token } = await service.issuance.issueToken(
    { name: 'night shift', scopes: ['operate'], expiresAtS: undefined, platform: undefined },
    { actor: 'test', atS: 1, reason: undefined },
  );
  const person = await openedWith(token);
  await person.goTo(`#/platforms/${platform.caller}`, platform.caller);
  const reloaded = person.page.next('Page.loadEventFired');
  await person.page.send('Page.reload');
  await reloaded;
  await person.shows(platform.apiKey);
  const { admin } = await service.operator();
  await admin.revokeToken({ tokenId: stored.tokenId });
  await person.press('Change limits');
  await person.confirm('Change limits', { reason: 'none' });
  await person.shows('its token has expired or was revoked');
  assert.equal(await person.page.value('sessionStorage.length'), 0);
  await person.type(await service.token(true), '#token');
  await person.press('Sign in');
  await person.shows(platform.caller, 'h1');
});

test('a token that expires ends its session', { skip }, async (t) => {
  const clock = createManualClock();
  const timed = await startService(t, { clock, provider: openTestProvider(t, {}, clock) });
  const { token } = await timed.issuance.issueToken(
    {
      ...{ name: 'day shift', scopes: ['read'], platform: undefined },
      expiresAtS: Math.floor(clock.nowMs() / 1_000) + 60,
    },
    { actor: 'test', atS: 1, reason: undefined },
  );
  const person = await open(`${timed.internalUrl}/console`);
  await person.type(token, '#token');
  await person.press('Sign in');
  await person.shows('Filings', 'h1');
  clock.advance(61_000);
  await person.page.value('location.hash = "#/orders"');
  await person.shows('its token has expired or was revoked');
});

test('a link opens the console once, leaves no trace in the address, and signing out revokes its session', {
  skip,
}, async () => {
  const artseal = artsealWith({ ARTSEAL_DATA_DIR: service.dataDir });
  const printed = (await artseal.json('console')).link as string;
  const link = printed.replace(/^.*(?=\/console)/, service.internalUrl);
  const person = await open(link);
  await person.shows('Overview', 'h1');
  assert.equal(await person.page.value('location.href'), consoleUrl);
  const { currentIndex, entries } = await person.page.send('Page.getNavigationHistory');
  assert.doesNotMatch(entries[currentIndex].url, /it_/);
  const second = await open(link);
  await second.shows('This link was used, or has expired.');
  await second.shows('Sign in');
  const another = (await artseal.json('console --scopes read')).link as string;
  await second.page.value(`location.hash = ${quoted(new URL(another).hash)}`);
  await second.shows('Filings', 'h1');
  assert.equal(await second.page.value('location.href'), consoleUrl);

  await person.press('Sign out');
  await person.shows('Sign in');
  const { admin } = await service.operator();
  const statuses = async () => {
    const { tokens } = await admin.listTokens({ pageSize: 100 });
    return tokens.filter(({ name }) => name.startsWith('console')).map(({ status }) => status);
  };
  const { REVOKED, VALID } = Token_Status;
  // The page signs out while it shows this already.
  await eventually('the session is revoked', 60_000, async () => (await statuses()).at(2) === REVOKED);
  assert.deepEqual(await statuses(), [REVOKED, REVOKED, REVOKED, VALID]);
});

test('a read-only session sees filings, orders and webhooks, and no action', { skip }, async () => {
  const { token } = await service.issuance.issueToken(
    { name: 'auditor', scopes: ['read'], expiresAtS: undefined, platform: undefined },
    { actor: 'test', atS: 1, reason: undefined },
  );
  const person = await openedWith(token);
  await person.shows('read-only');
  for (const [hash, heading] of [
    ['#/filings', 'Filings'],
    [`#/filings/${filingNo}`, filingNo],
    ['#/orders', 'Orders'],
    [`#/orders/${escrowId}`, escrowId],
    ['#/webhooks', 'Webhooks'],
  ] as const) {
    await person.goTo(hash, heading);
    await person.page.until('!document.querySelector("main").innerText.includes("Loading…")');
    const actions = (await person.buttons()).filter(
      (text) => !/^(Sign out|Skip|Check record|Previous|Next)/.test(text),
    );
    assert.deepEqual(actions, [], hash);
  }
  await person.goTo('#/tokens', 'Tokens');
  await person.shows('needs a token with the scope operate');
  await person.goTo(`#/filings/${filingNo}`, filingNo);
  await person.shows('front.jpg');
  await person.shows('ab'.repeat(32));
  await person.shows('Enter the verifier key');
  await person.type(service.publication.verifierKeys()[0] ?? '', '#vkey');
  await person.shows(`Proven: the filing ${filingNo}`);
  assertQuiet(person.page);
});

test('the search box leads to the view of a number, an order or a platform', { skip }, async () => {
  const person = await openedByOperator();
  for (const [query, heading] of [
    [filingNo.toLowerCase(), filingNo],
    [escrowId, escrowId],
    [platform.caller, platform.caller],
  ] as const) {
    await person.page.value('document.querySelector("#query").value = ""');
    await person.type(query, '#query');
    await person.page.value('document.querySelector("search form").requestSubmit()');
    await person.shows(heading, 'h1');
  }
  await person.goTo(`#/filings/${filingNo}`, filingNo);
  await person.shows(`Proven: the filing ${filingNo}`);
  await person.goTo('#/constructor', 'Not found');
  assertQuiet(person.page);
});

test('a call is found by its request id, by its platform, and among those that failed', {
  skip,
}, async () => {
  const forger = await service.platform();
  const { apiKey } = forger;
  const rejected = await fileArtwork(service, { apiKey, apiSecret: platform.apiSecret });
  for (let nth = 0; nth < 30; nth += 1) assert.equal((await fileArtwork(service, forger)).status, 200);
  const requestId = String(rejected.headers['x-request-id']);
  const person = await openedByOperator();
  const rows = (text: string) =>
    person.page.until(
      `${quoted(text)} === [...document.querySelectorAll('tbody tr')].map((row) => row.cells[1].innerText).join()`,
    );
  await person.goTo(`#/platforms/${forger.caller}`, forger.caller);
  await person.shows('last calls');
  await person.page.value(`[...document.links].find(({ innerText }) => innerText === 'last calls').click()`);
  await person.shows(`Requests of ${forger.caller}`, 'h1');
  await rows('200 OK,'.repeat(25).slice(0, -1));
  await person.press('Next');
  await rows(`${'200 OK,'.repeat(5)}401 SIGNATURE_INVALID`);
  await person.page.value(`document.querySelector('select').selectedIndex = 1`);
  await person.page.value(`document.querySelector('select').dispatchEvent(new Event('change'))`);
  await rows('401 SIGNATURE_INVALID');
  await person.shows(`${forger.caller} (not verified)`, 'tbody');

  await person.type(requestId, '#query');
  await person.page.value('document.querySelector("search form").requestSubmit()');
  await person.shows('Requests', 'h1');
  await person.shows('All requests');
  await rows('401 SIGNATURE_INVALID');
  await person.shows(requestId, 'tbody');
  await person.goTo(`#/requests/${requestId.replace(/.$/, (end) => (end === '0' ? '1' : '0'))}`, 'Requests');
  await person.shows('The server has no such call.');
  assertQuiet(person.page);
});

interface Violation {
  readonly id: string;
  readonly impact: string;
  readonly nodes: readonly { readonly html: string }[];
}

test('axe finds nothing serious, wide and narrow, light and dark', { skip }, async () => {
  const { webhooks, filings } = await service.clients({ scopes: ['read', 'file', 'webhook'] });
  const webhookId = (await webhooks.createWebhook({ url: 'http://127.0.0.1:9/' })).webhook?.webhookId ?? '';
  await filings.createFiling({ ...artwork, author: '齐白石 '.repeat(40).trim(), price: 2n ** 53n - 1n });
  await eventually('a failed delivery', 60_000, async () => {
    const { deliveries } = await webhooks.listDeliveries({ webhookId });
    return deliveries[0]?.error !== undefined;
  });
  const { access } = await service.operator();
  const registered = {
    email: `${'long'.repeat(15)}@example.com`,
    name: 'x'.repeat(128),
    intendedUse: 'y'.repeat(500),
  };
  await access.preRegister({ ...registered, tier: Key_Tier.TRIAL });
  const signIn = await open();
  const person = await openedByOperator();
  const { page } = person;
  const places: readonly (readonly [string, string, string?])[] = [
    ['#/overview', 'Overview'],
    ['#/filings', 'Filings'],
    [`#/filings/${filingNo}`, filingNo],
    ['#/orders', 'Orders'],
    [`#/orders/${escrowId}`, escrowId, 'Refund'],
    ['#/platforms', 'Platforms'],
    [`#/platforms/${platform.caller}`, platform.caller],
    ['#/access', 'Access', 'Add registration'],
    ['#/tokens', 'Tokens', 'Create token'],
    ['#/parties', 'Parties', 'Add party'],
    ['#/webhooks', 'Webhooks'],
    [`#/webhooks/${webhookId}`, 'http://127.0.0.1:', 'Redeliver missed events'],
    ['#/requests', 'Requests'],
    [`#/requests/of/${platform.caller}`, `Requests of ${platform.caller}`],
    ['#/audit', 'Audit log'],
    ['#/nothing', 'Not found'],
  ];
  const found: string[] = [];
  async function check(of: BrowserPage, place: string): Promise<void> {
    for (const width of [1280, 390]) {
      for (const scheme of ['light', 'dark']) {
        await of.send('Emulation.setDeviceMetricsOverride', {
          width,
          height: 900,
          deviceScaleFactor: 1,
          mobile: width < 500,
        });
        await of.send('Emulation.setEmulatedMedia', {
          features: [{ name: 'prefers-color-scheme', value: scheme }],
        });
        const violations = await of.value<readonly Violation[]>(
          'axe.run().then(({ violations }) => violations)',
        );
        for (const { id, impact, nodes } of violations)
          if (impact === 'serious' || impact === 'critical')
            found.push(`${place} ${width} ${scheme}: ${id} ${nodes.map(({ html }) => html).join(' ')}`);
        const wide = await of.value<number>('document.documentElement.scrollWidth');
        if (wide > width) found.push(`${place} ${width}: ${wide} px wide`);
      }
    }
  }
  for (const each of [signIn.page, page]) await each.value(axe);
  await check(signIn.page, 'sign-in');
  for (const [hash, heading, action] of places) {
    await person.goTo(hash, heading);
    await page.until('!document.querySelector("main").innerText.includes("Loading…")');
    await check(page, hash);
    if (action === undefined) continue;
    await person.press(action);
    await check(page, `${hash} ${action}`);
    await person.press('Cancel', dialog);
    await person.dialogClosed();
  }
  assert.deepEqual(found, []);
  assertQuiet(page);
});
