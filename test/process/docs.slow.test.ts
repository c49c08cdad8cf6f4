import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { guides } from '../../src/http/rest/docs/guides.ts';
import { projectFolder } from '../support/artseal-command.ts';
import { type Browser, type BrowserPage, startChromium } from '../support/chromium.ts';
import { fileScope } from '../support/file-scope.ts';
import { skipUnlessInstalled } from '../support/installed.ts';
import { startService } from '../support/service.ts';

const skip = skipUnlessInstalled('chromium');
const axe = readFileSync(join(projectFolder, 'node_modules', 'axe-core', 'axe.min.js'), 'utf8');
const chromium = skip === false ? await startChromium(fileScope) : undefined;
const service = await startService(fileScope);
const reference = '/docs/reference';
const paths = [
  '/docs/',
  reference,
  '/docs/errors',
  '/docs/webhooks',
  '/log/',
  ...guides.map(({ path }) => path),
];

/** Opens a page, and waits for what its script renders. */
async function open(path: string): Promise<BrowserPage> {
  const page = await (chromium as Browser).open(`${service.publicUrl}${path}`);
  if (path === reference) await page.until('document.querySelectorAll("h2").length > 5');
  return page;
}

/** Sets the size of the screen and the colours that the reader prefers. */
async function show(page: BrowserPage, width: number, scheme: 'light' | 'dark'): Promise<void> {
  const screen = { width, height: 900, deviceScaleFactor: 1, mobile: width < 500 };
  await page.send('Emulation.setDeviceMetricsOverride', screen);
  await page.send('Emulation.setEmulatedMedia', {
    features: [{ name: 'prefers-color-scheme', value: scheme }],
  });
  await page.until(`innerWidth === ${width} && matchMedia("(prefers-color-scheme: ${scheme})").matches`);
  // Transitions of colours end before axe looks at the contrast.
  await page.until('document.getAnimations().every(({ playState }) => playState !== "running")');
}

/** Asserts that axe finds nothing serious or critical. */
async function assertAccessible(page: BrowserPage, where: string): Promise<void> {
  const serious = await page.value<unknown[]>(
    `(async () => {
      const { violations } = await axe.run();
      return violations
        .filter(({ impact }) => impact === 'serious' || impact === 'critical')
        .map(({ id, nodes }) => [id, nodes.map(({ html, failureSummary }) => html + failureSummary)]);
    })()`,
  );
  assert.deepEqual(serious, [], where);
}

/** Loads axe. The policy of the page would not let it. */
async function loadAxe(page: BrowserPage): Promise<void> {
  await page.send('Page.setBypassCSP', { enabled: true });
  await page.value(`${axe};0`);
}

/** The words of code in the first columns of tables that are on two lines. */
const brokenCodes = `Array.from(document.querySelectorAll('main .table td:first-child code'))
  .filter((code) => /^\\w+$/.test(code.textContent) && code.getClientRects().length > 1)
  .map(({ textContent }) => textContent)`;

for (const path of paths) {
  test(`${path} is accessible on wide and narrow screens, light and dark, and asks no other host`, {
    skip,
  }, async () => {
    const page = await open(path);
    // Scalar writes its version.
    const complaints = page.complaints.filter((text) => !text.includes('@scalar/api-reference@'));
    assert.deepEqual(complaints, []);
    await loadAxe(page);
    for (const width of [1280, 390]) {
      for (const scheme of ['light', 'dark'] as const) {
        await show(page, width, scheme);
        await assertAccessible(page, `${width} ${scheme}`);
        assert.deepEqual(await page.value(brokenCodes), [], 'codes of a table that are broken');
        assert.ok((await page.value<number>('document.documentElement.scrollWidth')) <= width);
      }
    }
    const hosts = new Set(page.requests.map((url) => new URL(url).origin));
    assert.deepEqual([...hosts], [service.publicUrl]);
  });
}

/** Presses a key. */
async function press(page: BrowserPage, key: string, code: number, text?: string): Promise<void> {
  for (const type of ['rawKeyDown', ...(text === undefined ? [] : ['char']), 'keyUp'])
    await page.send('Input.dispatchKeyEvent', { type, key, code: key, windowsVirtualKeyCode: code, text });
}

/** Presses Tab up to `most` times, until an element has focus. */
async function tabTo(page: BrowserPage, selector: string, most: number): Promise<void> {
  for (let presses = 0; presses < most; presses++) {
    await press(page, 'Tab', 9);
    if (await page.value(`document.activeElement.matches(${JSON.stringify(selector)})`)) return;
  }
  assert.fail(`${most} presses of Tab do not reach ${selector}`);
}

test('the keyboard reaches the skip link, the list of pages, and code that scrolls', { skip }, async () => {
  const page = await open('/docs/evidence');
  await show(page, 1280, 'light');
  await tabTo(page, '.skip', 1);
  assert.ok(await page.value('document.activeElement.getBoundingClientRect().top >= 0'), 'it is visible');
  assert.notEqual(await page.value('getComputedStyle(document.activeElement).outlineStyle'), 'none');
  await press(page, 'Enter', 13, '\r');
  await page.until('document.activeElement.id === "content"');
  await tabTo(page, 'main pre', 40);
  await page.value('document.activeElement.blur(), scrollTo(0, 0)');
  await show(page, 390, 'light');
  await page.value('document.querySelector("header button").focus()');
  await press(page, 'Enter', 13, '\r');
  await page.until('document.querySelector("#pages").matches(":popover-open")');
  await loadAxe(page);
  await assertAccessible(page, 'the open menu');
  await tabTo(page, '#pages a[href="/docs/glossary"]', 12);
  const loaded = page.next('Page.loadEventFired');
  await press(page, 'Enter', 13, '\r');
  await loaded;
  assert.equal(await page.value('location.pathname'), '/docs/glossary');
});

test('an operation of the reference leads to the page that tries it, and the search is accessible', {
  skip,
}, async () => {
  const page = await open(`${reference}#tag/filing/POST/api/v1/filing`);
  await show(page, 1280, 'light');
  await page.until('document.querySelector(\'a[href="/docs/try#createFiling"]\') !== null');
  await loadAxe(page);
  await assertAccessible(page, 'an operation');
  await page.send('Input.dispatchKeyEvent', {
    type: 'rawKeyDown',
    key: 'k',
    code: 'KeyK',
    windowsVirtualKeyCode: 75,
    modifiers: 2,
  });
  await page.until('document.querySelector("[role=combobox]") !== null');
  await show(page, 1280, 'light');
  await assertAccessible(page, 'the search');
  const tried = await open('/docs/try#createFiling');
  assert.match(await tried.value('document.getElementById("operation").value'), /createFiling/);
});
