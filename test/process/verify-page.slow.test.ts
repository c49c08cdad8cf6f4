import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { linkTo } from '../../src/evidence/certificate/link.ts';
import { fileArtwork, getEvidence } from '../support/calls.ts';
import { type Browser, type BrowserPage, startChromium } from '../support/chromium.ts';
import {
  exampleBundle,
  exampleCheckpoint,
  exampleKey,
  exampleOrigin,
  exampleSalted,
} from '../support/evidence-example.ts';
import { fileScope } from '../support/file-scope.ts';
import { skipUnlessInstalled } from '../support/installed.ts';
import { checkpointTextOf, noteKey, witnessKey } from '../support/note-keys.ts';
import { startService } from '../support/service.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const skip = skipUnlessInstalled('chromium');
const pageFile = join(import.meta.dirname, '..', '..', 'docs', 'verify.html');
const folder = temporaryFolder(fileScope);

/** Writes a file. Returns its path. */
function file(name: string, content: string | Uint8Array): string {
  const path = join(folder, name);
  writeFileSync(path, content);
  return path;
}

const good = exampleBundle(1);
const forgedLog = noteKey(exampleOrigin, Buffer.alloc(32, 0x11));
const files = {
  good: file('good.json', JSON.stringify(good)),
  salted: file('salted.json', JSON.stringify(exampleSalted())),
  transfer: file('transfer.json', JSON.stringify(exampleBundle(4))),
  author: file(
    'author.json',
    JSON.stringify({ ...good, record: good.record.replace('Zhang Daqian', 'Xu Beihong') }),
  ),
  garbage: file(
    'garbage.bin',
    Uint8Array.from({ length: 5_000 }, (_, place) => (place * 151) % 256),
  ),
  huge: file('huge.json', JSON.stringify({ ...good, salt: '0'.repeat(2_000_000) })),
  key: file('log.vkey', `${exampleKey.vkey}\n`),
  wrongKey: file('other.vkey', `${forgedLog.vkey}\n`),
  pin: file('pin.txt', exampleCheckpoint()),
  earlierPin: file('earlier.txt', exampleCheckpoint(3)),
  forkedPin: file('forked.txt', exampleKey.sign(`${exampleOrigin}\n5\n${'A'.repeat(43)}=\n`)),
} as const;

/** Chooses a file as the dialog does. */
async function choose(page: BrowserPage, input: string, path: string): Promise<void> {
  const opened = page.next('Page.fileChooserOpened');
  await page.send('Page.setInterceptFileChooserDialog', { enabled: true });
  // A click by hand: scripts may not open the dialogue.
  await page.value(`document.getElementById('${input}').scrollIntoView()`);
  const { x, y } = await page.value<{ x: number; y: number }>(
    `(({ x, y }) => ({ x: x + 20, y: y + 10 }))(document.getElementById('${input}').getBoundingClientRect())`,
  );
  for (const type of ['mousePressed', 'mouseReleased']) {
    await page.send('Input.dispatchMouseEvent', { type, x, y, button: 'left', clickCount: 1 });
  }
  const { backendNodeId } = await opened;
  await page.send('DOM.setFileInputFiles', { backendNodeId, files: [path] });
}

/** Drops files on the page. */
async function drop(page: BrowserPage, ...paths: readonly string[]): Promise<void> {
  const data = { items: [], files: paths, dragOperationsMask: 1 };
  for (const type of ['dragEnter', 'dragOver', 'drop']) {
    await page.send('Input.dispatchDragEvent', { type, x: 200, y: 200, data });
  }
}

/** Drops files together. Returns the first words of the result. */
async function verdictOn(page: BrowserPage, ...paths: readonly string[]): Promise<string> {
  // The page takes a verdict away as soon as there are other files, and finds the next one later.
  await page.value('document.getElementById("verdict").textContent = ""');
  await drop(page, ...paths);
  return verdictOf(page);
}

async function verdictOf(page: BrowserPage): Promise<string> {
  const verdict = 'document.getElementById("verdict").textContent';
  await page.until(`${verdict} !== ""`);
  return page.value<string>(verdict);
}

/** The whole result. */
const shown = (page: BrowserPage) => page.value<string>('document.getElementById("result").innerText');

/** The results of the five checks. */
async function marks(page: BrowserPage): Promise<string> {
  const words = await page.value<string[]>(
    'Array.from(document.querySelectorAll(".checks b"), ({ textContent }) => textContent)',
  );
  return words.map((word) => word.slice(0, 1)).join('');
}

/** Asserts that the page loaded nothing but itself, and logged no error. */
function assertQuiet(page: BrowserPage, url: string): void {
  assert.deepEqual(page.requests, [url]);
  assert.deepEqual(page.complaints, []);
}

const fromDisk = pathToFileURL(pageFile).href;
const chromium = skip === false ? await startChromium(fileScope) : undefined;
const open = (url: string): Promise<BrowserPage> => (chromium as Browser).open(url);

test('from disk: a bundle and the key that are dropped together are verified, and only what they prove is shown', {
  skip,
}, async () => {
  const page = await open(fromDisk);
  assert.equal(
    await verdictOn(page, files.good, files.key),
    'Proven: the filing AS-2026-000002 is in the log registry.example/log.',
  );
  assert.equal(await marks(page), '✓✓✓✓–');
  const text = await shown(page);
  for (const words of [
    'leaf 1 (counted from 0) of the 5 leaves of the log registry.example/log, under the number AS-2026-000002',
    'added it at 2026-11-21 01:14:59 UTC, by its own clock',
    exampleKey.vkey,
    'Who made the work',
    'That everybody sees the same log',
    'neither a chain nor judicial evidence',
    'Zhang Daqian',
    '68 x 136 cm',
    '12800000',
  ]) {
    assert.ok(text.includes(words), `${words} is not in ${text}`);
  }
  assert.doesNotMatch(text, /genuine|authentic/i);
  assert.match(
    await verdictOn(page, files.transfer),
    /^Proven: record 2 \(TRANSFER\) of AS-2026-000003 is in/,
  );
  assertQuiet(page, fromDisk);
});

test('the page shows what a bundle discloses, and names what it hides', { skip }, async () => {
  const page = await open(fromDisk);
  assert.equal(
    await verdictOn(page, files.salted, files.key),
    'Proven: the filing AS-2026-000003 is in the log registry.example/log.',
  );
  const text = await shown(page);
  for (const words of [
    'Gallery One',
    'Qi Baishi',
    'front.jpg',
    'The members that the file hides: Price in minor units',
  ])
    assert.ok(text.includes(words), `${words} is not in ${text}`);
  assert.match(text, /Price in minor units\s+not disclosed/);
  assertQuiet(page, fromDisk);
});

test('files can be chosen in the dialog, and the key can be typed', { skip }, async () => {
  const page = await open(fromDisk);
  await choose(page, 'bundle', files.good);
  await page.until('document.getElementById("bundle-name").textContent.startsWith("Chosen: good.json, ")');
  await page.value('document.getElementById("key").focus()');
  await page.send('Input.insertText', { text: exampleKey.vkey });
  await page.value('document.querySelector("[type=submit]").focus()');
  for (const type of ['rawKeyDown', 'char', 'keyUp']) {
    await page.send('Input.dispatchKeyEvent', { type, key: 'Enter', windowsVirtualKeyCode: 13, text: '\r' });
  }
  assert.match(await verdictOf(page), /^Proven: /);
  await choose(page, 'key-file', files.wrongKey);
  await page.until('document.getElementById("verdict").textContent.startsWith("Not proven: ")');
  assertQuiet(page, fromDisk);
});

test('a failure is explained, with the check that failed, and nothing is called proven', {
  skip,
}, async () => {
  const page = await open(fromDisk);
  for (const [paths, verdict, expected] of [
    [[files.author, files.key], /^Not proven: the record does not have the hash of the bundle\.$/, '✓✗–––'],
    [[files.garbage], /^Not proven: the bundle is not UTF-8 text\.$/, '✗––––'],
    [[files.good, files.wrongKey], /^Not proven: no given key signed the checkpoint; /, '✓✓✓✗–'],
    [
      [files.good, files.key, files.forkedPin],
      /^Not proven: .* two different trees .* Keep all of these files/,
      '✓✓✓✓✗',
    ],
    [[files.huge], /^huge\.json is too large: it has 2000953 bytes, and the limit is 1000000\.$/, ''],
    [[files.wrongKey], /^$/, ''],
  ] as const) {
    if (verdict.test('')) await drop(page, ...paths);
    else assert.match(await verdictOn(page, ...paths), verdict);
    assert.equal(await marks(page), expected);
    assert.doesNotMatch(await shown(page), /What is proven/);
  }
  assertQuiet(page, fromDisk);
});

test('a saved checkpoint is compared, or the page says that it cannot be', { skip }, async () => {
  const page = await open(fromDisk);
  await verdictOn(page, files.good, files.key, files.pin);
  assert.equal(await marks(page), '✓✓✓✓✓');
  assert.match(await shown(page), /the same log as that of the checkpoint that you kept/);
  assert.match(await verdictOn(page, files.earlierPin), /^Proven: /);
  assert.equal(await marks(page), '✓✓✓✓–');
  assert.match(await shown(page), /3 leaves, this checkpoint of 5/);
});

test('the page names the given witnesses, and whether they signed', { skip }, async () => {
  const page = await open(fromDisk);
  const [witness, silent] = [
    witnessKey('witness.example', Buffer.alloc(32, 0x22)),
    witnessKey('silent.example', Buffer.alloc(32, 0x33)),
  ];
  const keys = file('all.vkey', `${exampleKey.vkey}\n${witness.vkey}\n${silent.vkey}\n`);
  const cosigned = {
    ...good,
    proof: good.proof + witness.cosign(checkpointTextOf(good.proof), 1_795_223_760),
  };
  assert.match(await verdictOn(page, file('cosigned.json', JSON.stringify(cosigned)), keys), /^Proven: /);
  const text = await shown(page);
  assert.match(
    text,
    /The witness witness\.example cosigned the log up to this checkpoint at 2026-11-21 01:16:00 UTC/,
  );
  assert.match(text, /the witness silent\.example saw the log up to this checkpoint: it did not cosign/);
  const flipped = cosigned.proof.at(-20) === 'A' ? 'B' : 'A';
  const forged = { ...good, proof: `${cosigned.proof.slice(0, -20)}${flipped}${cosigned.proof.slice(-19)}` };
  assert.match(
    await verdictOn(page, file('forged.json', JSON.stringify(forged))),
    /^Not proven: .*cosignature/,
  );
});

test('a result disappears when the key changes', { skip }, async () => {
  const page = await open(fromDisk);
  await verdictOn(page, files.good, files.key);
  await page.value('document.getElementById("key").focus()');
  await page.send('Input.insertText', { text: 'x' });
  assert.equal(await page.value('document.getElementById("verdict").textContent'), '');
  assert.equal(await shown(page), '');
});

test('the content of a record is shown as text, whatever it looks like', { skip }, async () => {
  const page = await open(fromDisk);
  const record = good.record.replace('Zhang Daqian', '<img src=http://elsewhere.example onerror=alert(1)>');
  const path = file('markup.json', JSON.stringify({ ...good, record }));
  assert.match(await verdictOn(page, path, files.key), /^Not proven/);
  assert.match(await shown(page), /<img src=http/);
  const turned = good.record.replace('Zhang Daqian', 'Zhang\u202e\u200bDaqian');
  await verdictOn(page, file('turned.json', JSON.stringify({ ...good, record: turned })));
  assert.ok((await shown(page)).includes('Zhang\\u202e\\u200bDaqian'));
  assertQuiet(page, fromDisk);
});

test('the page works with keyboards, screen readers and narrow screens', { skip }, async () => {
  const page = await open(fromDisk);
  await verdictOn(page, files.good, files.key);
  assert.equal(await page.value('document.documentElement.lang'), 'en');
  assert.equal(await page.value('document.getElementById("verdict").getAttribute("aria-live")'), 'polite');
  assert.deepEqual(
    await page.value(
      'Array.from(document.querySelectorAll("input, textarea"), ({ labels }) => labels.length)',
    ),
    [1, 1, 1, 1, 1],
  );
  await page.send('Emulation.setDeviceMetricsOverride', {
    ...{ width: 360, height: 740, deviceScaleFactor: 2, mobile: true },
  });
  await page.until('innerWidth === 360');
  assert.equal(await page.value('document.documentElement.scrollWidth'), 360);
});

test('served: /verify proves bundles of the service over plain HTTP, and requests nothing', {
  skip,
}, async () => {
  const service = await startService(fileScope);
  const platform = await service.platform();
  const { filingNo } = (await fileArtwork(service, platform)).json;
  const bundle = file('answered.json', (await getEvidence(service, platform, filingNo)).text);
  const vkey = file('answered.vkey', await (await fetch(`${service.publicUrl}/log/vkey`)).text());

  const url = `${service.publicUrl}/verify`;
  const page = await open(url);
  const verdict = await verdictOn(page, bundle, vkey);
  assert.match(verdict, new RegExp(`^Proven: the filing ${filingNo} is in the log artseal\\.invalid/`));
  assert.match(await verdictOn(page, files.author), /^Not proven: the record/);
  assertQuiet(page, url);
  const link = 'document.getElementById("service").checkVisibility()';
  assert.equal(await page.value(link), true);
  assert.equal(
    await (await open(fromDisk)).value(link),
    false,
    'a copy on disk has no service to lead back to',
  );

  const log = await open(`${service.publicUrl}/log/`);
  assert.match(await log.value('document.title'), /^Evidence log artseal\.invalid\//);
  assertQuiet(log, `${service.publicUrl}/log/`);
});

test('the key of a QR code is not used for a file that is chosen after it', { skip }, async () => {
  const { link } = linkTo(fromDisk, exampleSalted(), exampleKey.vkey);
  const page = await open(link);
  assert.match(await verdictOf(page), /^Proven: the filing AS-2026-000003 /);
  assert.equal(await page.value('document.getElementById("from-code").hidden'), false);
  assert.match(await verdictOn(page, files.good), /^The verifier key is missing/);
  assert.equal(await page.value('document.getElementById("from-code").hidden'), true);
  assert.match(await verdictOn(page, files.key, files.good), /^Proven: the filing AS-2026-000002 /);
});
