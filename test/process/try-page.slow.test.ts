import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { parse } from 'yaml';
import { type Browser, type BrowserPage, startChromium } from '../support/chromium.ts';
import { fileScope } from '../support/file-scope.ts';
import { skipUnlessInstalled } from '../support/installed.ts';
import { startService } from '../support/service.ts';
import { documentedSignature } from '../support/signed-request.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const skip = skipUnlessInstalled('chromium', 'curl', 'openssl', 'python3');
const root = join(import.meta.dirname, '..', '..');
const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const folder = temporaryFolder(fileScope);
const chromium = skip === false ? await startChromium(fileScope) : undefined;
const service = await startService(fileScope);
const platform = await service.platform();
const { apiKey, apiSecret } = platform;
const credentialsFile = JSON.stringify({ baseUrl: service.publicUrl, apiKey, apiSecret }, null, 2);

const textOf = (page: BrowserPage, id: string) =>
  page.value<string>(`document.getElementById('${id}').textContent`);
const inputOf = (page: BrowserPage, id: string) =>
  page.value<string>(`document.getElementById('${id}').value`);

/** Opens the page at an operation, with the credentials of a sandbox or other ones. */
async function open(id = '', credentials = credentialsFile): Promise<BrowserPage> {
  const page = await (chromium as Browser).open(`${service.publicUrl}/docs/try#${id}`);
  if (credentials !== '') await paste(page, 'key', credentials);
  return page;
}

/** Replaces the content of a field as a paste does. */
async function paste(page: BrowserPage, id: string, text: string): Promise<void> {
  await page.value(`document.getElementById('${id}').focus(); document.getElementById('${id}').select()`);
  await page.send('Input.insertText', { text });
}

async function choose(page: BrowserPage, id: string, value: string): Promise<void> {
  await page.value(`{ const list = document.getElementById('${id}'); list.value = '${value}';
    for (const type of ['input', 'change']) list.dispatchEvent(new Event(type, { bubbles: true })) }`);
}

/** Presses Send. Returns the status line of the response. */
async function send(page: BrowserPage): Promise<string> {
  await page.value(
    `document.getElementById('status').textContent = ''; document.getElementById('send').click()`,
  );
  await page.until(`!['', 'Sending…'].includes(document.getElementById('status').textContent)`);
  return textOf(page, 'status');
}

const responseOf = async (page: BrowserPage) =>
  JSON.parse(await page.value('document.querySelector("#response > pre").textContent'));

/** Asserts that the page sent nothing to another host and broke no policy. The browser logs error responses by itself. */
function assertQuiet(page: BrowserPage): void {
  for (const url of page.requests) assert.equal(new URL(url).origin, service.publicUrl);
  assert.deepEqual(
    page.complaints.filter((text) => !text.startsWith('Failed to load resource: the server responded')),
    [],
  );
}

test('a filing with nothing but a key: paste, send, and read it in the next calls', { skip }, async () => {
  const page = await open();
  assert.equal(await inputOf(page, 'key'), apiKey);
  assert.equal(await inputOf(page, 'secret'), apiSecret);
  assert.equal(await send(page), '✓ 200');
  const { filingNo } = await responseOf(page);
  assert.match(filingNo, /^AS-\d{4}-\d{6}$/);
  assert.equal(await send(page), '✓ 200');
  const second = (await responseOf(page)).filingNo;
  assert.notEqual(second, filingNo);
  await choose(page, 'operation', 'getProvenance');
  assert.equal(await textOf(page, 'response'), '');
  assert.equal(await inputOf(page, 'target'), `/api/v1/provenance/${second}`);
  assert.equal(await send(page), '✓ 200');
  await choose(page, 'operation', 'listFilings');
  await paste(page, 'field-pageSize', '1');
  await paste(page, 'field-year', second.slice(3, 7));
  assert.equal(await inputOf(page, 'target'), `/api/v1/filing?pageSize=1&year=${second.slice(3, 7)}`);
  assert.equal(await send(page), '✓ 200');
  assert.equal((await responseOf(page)).filings.length, 1);
  assertQuiet(page);
});

test('each signed operation of openapi.yaml is offered with a request that works', { skip }, async () => {
  const { paths } = parse(readFileSync(join(root, 'openapi.yaml'), 'utf8'));
  // biome-ignore lint/suspicious/noExplicitAny: check:openapi validates the document.
  const documented = Object.values<any>(paths).flatMap((item) => Object.values<any>(item));
  const signed = documented.filter(({ security }) => security === undefined);
  const page = await open();
  const offered = await page.value<string[]>(
    'Array.from(document.getElementById("operation").options, ({ value }) => value)',
  );
  assert.deepEqual(offered.toSorted(), signed.map(({ operationId }) => operationId).sort());
  // The calls before these release the order and pause the endpoint.
  const expected: Record<string, RegExp> = { refundEscrow: /409/, redeliver: /WEBHOOK_DISABLED/ };
  const isLast = (id: string) => id.startsWith('delete');
  for (const id of offered.sort((a, b) => Number(isLast(a)) - Number(isLast(b)))) {
    await choose(page, 'operation', id);
    assert.equal(await page.value('location.hash'), `#${id}`);
    assert.match(await send(page), expected[id] ?? /^✓ 200/, `${id}: ${await textOf(page, 'response')}`);
  }
  assertQuiet(page);
});

/** The languages whose code signs each time it runs, with its file and what runs it. */
const others = [
  ['Shell with openssl', 'openssl.sh', 'sh'],
  ['JavaScript (Node)', 'call.mjs', process.execPath],
  ['Python', 'call.py', 'python3'],
] as const;

test('each code makes the call: curl once, the others as often as they run', { skip }, async () => {
  const page = await open('createFiling');
  const artwork = JSON.parse(await inputOf(page, 'body'));
  const author = `@O'Keeffe "$(id)" \`id\` 齐白石 🖌 \\n`;
  await paste(page, 'body', JSON.stringify({ ...artwork, author }, null, 1));
  const again = async (file: string, command: string) => {
    const env = { ...process.env, ARTSEAL_API_KEY: apiKey, ARTSEAL_API_SECRET: apiSecret };
    const { stdout } = await promisify(execFile)(command, [join(folder, file)], { env });
    return stdout;
  };
  const run = async (language: string, file: string, command: string) => {
    await choose(page, 'language', language);
    writeFileSync(join(folder, file), await textOf(page, 'code'));
    return again(file, command);
  };
  assert.match(await run('curl', 'curl.sh', 'sh'), /^\{"filingNo":"AS-/);
  assert.match(await again('curl.sh', 'sh'), /"code":"NONCE_REUSED"/);
  for (const [language, file, command] of others) {
    assert.match(await run(language, file, command), /^(200 )?\{"filingNo":"AS-/);
    assert.match(await again(file, command), /^(200 )?\{"filingNo":"AS-/);
  }
  await choose(page, 'operation', 'listEscrows');
  await paste(page, 'field-pageToken', '[a-z] {1,2}');
  for (const [language, file, command] of [['curl', 'curl.sh', 'sh'] as const, ...others])
    assert.match(await run(language, file, command), /"code":"VALIDATION_FAILED","message":"pageToken /);
  await choose(page, 'operation', 'createFiling');
  await choose(page, 'language', 'Shell with openssl');
  await paste(page, 'body', '');
  assert.match(
    await run('Shell with openssl', 'openssl.sh', 'sh'),
    /"code":"UNSUPPORTED_MEDIA_TYPE|INVALID_JSON/,
  );
  assertQuiet(page);
});

test('a wrong secret gives the code, its meaning and the cause', { skip }, async () => {
  const page = await open('createFiling');
  await paste(page, 'secret', 'sk_sandbox_wrong');
  assert.equal(await send(page), '✗ 401 SIGNATURE_INVALID');
  assert.match(await textOf(page, 'response'), /So the secret is wrong, or the key is not valid here\./);
  assert.equal(await page.value('document.querySelector("#response a").pathname'), '/docs/errors');
  assert.equal(await page.value('document.querySelector("#response a").hash'), '#SIGNATURE_INVALID');
  await paste(page, 'secret', apiSecret);
  await paste(page, 'body', '{"author":');
  assert.equal(await send(page), '✗ 400 INVALID_JSON');
  assert.match(await textOf(page, 'response'), /The body is not one JSON object/);
  await paste(page, 'timestamp', '1795222800');
  assert.equal(await send(page), '✗ 401 TIMESTAMP_EXPIRED');
  assert.match(await textOf(page, 'response'), /more than 300 seconds from the server’s clock/);
  assertQuiet(page);
});

test('the calculator signs parts that are set by hand, and finds what the code of the user does otherwise', {
  skip,
}, async () => {
  const page = await open('createFiling');
  const request = { method: 'POST', target: '/api/v1/filing', timestamp: '1795222800', nonce: 'n-1' };
  for (const id of ['timestamp', 'nonce'] as const) await paste(page, id, request[id]);
  assert.equal(await page.value('document.getElementById("automatic").checked'), false);
  const body = await inputOf(page, 'body');
  const own = documentedSignature(apiSecret, { ...request, body });
  assert.equal(await textOf(page, 'signature'), own);
  await paste(page, 'pasted', own);
  assert.equal(await textOf(page, 'comparison'), '✓ The same');
  // The error of code that signs the body with white space, and sends it without.
  const sent = JSON.stringify(JSON.parse(body));
  const response = await fetch(`${service.publicUrl}/api/v1/filing`, {
    method: 'POST',
    headers: {
      'Content-Type': 'application/json',
      'X-Api-Key': apiKey,
      'X-Timestamp': String(Math.floor(Date.now() / 1_000)),
      'X-Nonce': 'n-2',
      'X-Signature': own,
    },
    body: sent,
  });
  await paste(page, 'pasted', await response.text());
  assert.match(await textOf(page, 'differences'), /^SHA-256 of the body.*Timestamp.*Nonce/);
  await page.value('document.getElementById("adopt").click()');
  assert.match(await textOf(page, 'comparison'), /: the body has other bytes/);
  assert.equal(await inputOf(page, 'nonce'), 'n-2');
  assert.match(await textOf(page, 'differences'), /^SHA-256 of the body(?!.*Nonce)/);
  await paste(page, 'body', sent);
  assert.equal(await textOf(page, 'comparison'), '✓ The same');
  await paste(page, 'pasted', 'POST\n/api/v1/filing');
  assert.match(await textOf(page, 'comparison'), /^✗/);
  await paste(page, 'pasted', '');
  assert.equal(await textOf(page, 'comparison'), '');
  assertQuiet(page);
});

test('the hash of the address chooses the operation, and nothing else', { skip }, async () => {
  const page = await open('createEscrow', '');
  assert.equal(await inputOf(page, 'operation'), 'createEscrow');
  assert.equal(await inputOf(page, 'target'), '/api/v1/escrow');
  await page.value('void (location.hash = "#getHealth")');
  await page.until('document.getElementById("notice").textContent !== ""');
  assert.match(await textOf(page, 'notice'), /^getHealth needs no signature: send GET http:.*\/healthz\.$/);
  for (const hash of ['#<img src=x onerror=alert(1)>', '#%00', '#key', '#', '#toString'])
    await page.value(`void (location.hash = '${hash}')`);
  await page.value('void (location.hash = "#getEscrow")');
  await page.until('document.getElementById("operation").value === "getEscrow"');
  assert.equal(await textOf(page, 'notice'), '');
  assertQuiet(page);
});

test('a request that a browser would change, or send elsewhere, is not sent', { skip }, async () => {
  const page = await open('getFiling');
  const before = page.requests.length;
  for (const target of [
    '//elsewhere.example/',
    '/\\elsewhere.example',
    '/a/../b',
    '/a b',
    '/a#b',
    '/é',
    '/a?b="',
  ]) {
    await paste(page, 'target', target);
    const status = await send(page);
    if (target.startsWith('//')) assert.match(status, /^✗ 400 BAD_REQUEST_TARGET/);
    else assert.match(status, /^Browsers cannot send/, target);
  }
  await paste(page, 'target', '/api/v1/filing');
  await paste(page, 'body', '{}');
  assert.match(await send(page), /^Browsers cannot send/);
  // The browser itself keeps the form back.
  for (const [id, text] of [
    ['target', '@elsewhere.example/'],
    ['key', ''],
    ['key', apiSecret],
  ] as const) {
    await paste(page, id, text);
    await page.value('document.getElementById("send").click()');
    assert.equal(await page.value(`document.getElementById('${id}').validity.valid`), false);
  }
  assert.match(await textOf(page, 'credentials-note'), /^This is a secret/);
  assert.equal(page.requests.length, before + 1);
  assertQuiet(page);
});

test('with a live key, a call that writes is sent only after a confirmation', { skip }, async () => {
  const page = await open('createFiling', `ak_live_${'0'.repeat(32)}`);
  await paste(page, 'secret', apiSecret);
  assert.match(await textOf(page, 'credentials-note'), /^A live key/);
  const before = page.requests.length;
  for (const accept of [false, true]) {
    const opened = page.next('Page.javascriptDialogOpening');
    const clicked = page.value('document.getElementById("send").click()');
    assert.match((await opened).message, /^Send POST \/api\/v1\/filing to a LIVE system\?$/);
    await page.send('Page.handleJavaScriptDialog', { accept });
    await clicked;
    if (!accept) assert.equal(page.requests.length, before);
  }
  await page.until('document.getElementById("status").textContent.startsWith("✗ 401")');
  await choose(page, 'operation', 'listFilings');
  assert.equal(await send(page), '✗ 401 SIGNATURE_INVALID');
});

test('the clock of the computer may be wrong, and the page says so', { skip }, async () => {
  const page = await open('createFiling');
  assert.equal(await textOf(page, 'clock'), '');
  const source = '{ const now = Date.now; Date.now = () => now() - 600_000; }';
  await page.send('Page.addScriptToEvaluateOnNewDocument', { source });
  const loaded = page.next('Page.loadEventFired');
  await page.send('Page.reload');
  await loaded;
  await page.until('document.getElementById("clock").textContent !== ""');
  const [, slowS] = /^This computer's clock is (\d+) seconds slow\./.exec(await textOf(page, 'clock')) ?? [];
  // The Date of the response is older by the time until it is read.
  assert.ok(Number(slowS) >= 590 && Number(slowS) <= 601, `${slowS} seconds`);
  assert.equal(await inputOf(page, 'key'), '');
  await paste(page, 'key', credentialsFile);
  assert.equal(await send(page), '✓ 200');
});

test('credentials are kept in the tab only if the user wants that', { skip }, async () => {
  const page = await open();
  const reload = async () => {
    const loaded = page.next('Page.loadEventFired');
    await page.send('Page.reload');
    await loaded;
  };
  await reload();
  assert.equal(await inputOf(page, 'key'), '');
  await paste(page, 'key', credentialsFile);
  await page.value('document.getElementById("remember").click()');
  await reload();
  assert.equal(await inputOf(page, 'secret'), apiSecret);
  await page.value('document.getElementById("remember").click()');
  assert.equal(await page.value('sessionStorage.length + localStorage.length'), 0);
  assert.equal(await page.value('document.cookie'), '');
});

for (const [stored, script] of [
  ['forbids storage', `Object.defineProperty(window, 'sessionStorage', { get() { throw new Error() } })`],
  ['keeps something else', `sessionStorage.setItem('artseal-credentials', '{')`],
]) {
  test(`the page works in a browser that ${stored}`, { skip }, async () => {
    const page = await open('', '');
    await page.send('Page.addScriptToEvaluateOnNewDocument', { source: script });
    const loaded = page.next('Page.loadEventFired');
    await page.send('Page.reload');
    await loaded;
    await paste(page, 'key', credentialsFile);
    assert.equal(await send(page), '✓ 200');
    assertQuiet(page);
  });
}

test('what a response contains is shown as text', { skip }, async () => {
  const page = await open('createWebhook');
  const description = '<img src=x onerror=alert(1)>';
  await paste(page, 'body', JSON.stringify({ url: 'https://gallery.example/', description }));
  assert.equal(await send(page), '✓ 200');
  assert.match(await textOf(page, 'response'), /<img src=x onerror/);
  await page.value(
    `window.fetch = async () => new Response('{"code":"toString"}', { status: 500 }); undefined`,
  );
  assert.equal(await send(page), '✗ 500 toString');
  assert.match(await textOf(page, 'response'), /^\{/);
  assertQuiet(page);
});

for (const width of [1280, 390]) {
  for (const scheme of ['light', 'dark']) {
    test(`axe finds nothing serious, and nothing is cut off: ${width} px, ${scheme}`, { skip }, async () => {
      const page = await open('getEvidence');
      const screen = { width, height: 844, deviceScaleFactor: 1, mobile: width < 500 };
      await page.send('Emulation.setDeviceMetricsOverride', screen);
      const features = [{ name: 'prefers-color-scheme', value: scheme }];
      await page.send('Emulation.setEmulatedMedia', { features });
      await paste(page, 'pasted', 'POST');
      await paste(page, 'secret', 'sk_wrong');
      assert.match(await send(page), /SIGNATURE_INVALID/);
      await page.value(`${axe}; undefined`);
      const violations = await page.value<{ impact: string; id: string; nodes: string[] }[]>(
        `axe.run().then(({ violations }) => violations.map(({ impact, id, nodes }) =>
          ({ impact, id, nodes: nodes.map(({ html }) => html) })))`,
      );
      assert.deepEqual(
        violations.filter(({ impact }) => impact === 'serious' || impact === 'critical'),
        [],
      );
      assert.ok((await page.value<number>('document.documentElement.scrollWidth')) <= width);
      assertQuiet(page);
    });
  }
}

test('a call can be made with the keyboard alone', { skip }, async () => {
  const page = await open('listFilings', '');
  const press = async (key: string, code: number, text?: string) => {
    for (const type of ['rawKeyDown', ...(text === undefined ? [] : ['char']), 'keyUp'])
      await page.send('Input.dispatchKeyEvent', {
        type,
        key,
        windowsVirtualKeyCode: code,
        ...(text && { text }),
      });
  };
  const focused = () => page.value<string>('document.activeElement.id');
  for (let presses = 0; presses < 10 && (await focused()) !== 'key'; presses += 1) await press('Tab', 9);
  await page.send('Input.insertText', { text: apiKey });
  await press('Tab', 9);
  assert.equal(await focused(), 'secret');
  assert.match(await page.value('getComputedStyle(document.activeElement).outlineStyle'), /solid/);
  await page.send('Input.insertText', { text: apiSecret });
  await press('Enter', 13, '\r');
  await page.until('document.getElementById("status").textContent === "✓ 200"');
});
