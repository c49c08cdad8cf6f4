import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { promisify } from 'node:util';
import { createRestClient } from '../../src/client/rest.ts';
import { artsealWith } from '../support/artseal.ts';
import { projectFolder } from '../support/artseal-command.ts';
import { fileArtwork, getEvidence } from '../support/calls.ts';
import { startChromium } from '../support/chromium.ts';
import { fileScope } from '../support/file-scope.ts';
import { buildGoProgram } from '../support/go-program.ts';
import { skipUnlessInstalled } from '../support/installed.ts';
import { artwork } from '../support/samples.ts';
import { startService } from '../support/service.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const run = async (program: string, words: readonly string[], cwd?: string): Promise<string> =>
  (await promisify(execFile)(program, words, { encoding: 'utf8', cwd })).stdout;

const host = 'registry.example';
const service = await startService(fileScope, {
  env: { ARTSEAL_PUBLIC_URL: `http://${host}/`, ARTSEAL_TLOG_ORIGIN: `${host}/log` },
});
const platform = await service.platform();
const folder = temporaryFolder(fileScope);
const vkey = (await (await fetch(`${service.publicUrl}/log/vkey`)).text()).trim();

const scroll = {
  ...{ ...artwork, author: '齐白石 Qi Baishi', material: '纸本设色' },
  attachments: [{ name: '正面.jpg', sha256: 'ab'.repeat(32) }],
};
/** The longest texts, with characters that the font does not have. */
const longest = {
  ...{ author: '龑'.repeat(200), era: 'و'.repeat(200), size: '🖌'.repeat(200), material: 'm'.repeat(200) },
  ...{ condition: '完好无损，'.repeat(400), price: Number.MAX_SAFE_INTEGER },
  attachments: Array.from({ length: 20 }, () => ({ name: '图'.repeat(200), sha256: 'cd'.repeat(32) })),
};

/** Files an artwork, and writes its certificate into a file. Returns the path and the number. */
async function certificateOf(name: string, body: object, query = '') {
  const { filingNo } = (await fileArtwork(service, platform, { body: JSON.stringify(body) })).json;
  await getEvidence(service, platform, filingNo);
  const target = `/api/v1/filing/${filingNo}/certificate${query}`;
  const response = await createRestClient(service.publicUrl, platform).send('GET', target);
  assert.deepEqual([response.status, response.headers.get('content-type')], [200, 'application/pdf']);
  const path = join(folder, `${name}.pdf`);
  writeFileSync(path, Buffer.from(await response.arrayBuffer()));
  return { path, filingNo: String(filingNo) };
}

const whole = await certificateOf('whole', scroll);
const withoutPrice = await certificateOf(
  'without-price',
  scroll,
  '?disclose=author,era,size,material,condition,attachments',
);
const long = await certificateOf('long', longest);
const certificates = [whole, withoutPrice, long];

const { program, skip } = buildGoProgram(folder, './bundle');

const verify = (file: string) => artsealWith({}).lines(['verify', file, '--key', vkey]);

test('veraPDF finds no fault in certificates as PDF/A-3B', {
  skip: skipUnlessInstalled('mvn', 'java'),
}, async () => {
  const project = join(folder, 'pdfa');
  cpSync(join(projectFolder, 'test', 'clients', 'pdfa'), project, { recursive: true });
  const goals = ['compile', 'dependency:build-classpath', '-Dmdep.outputFile=classpath'];
  await run('mvn', ['--quiet', '--batch-mode', ...goals], project);
  const classpath = `target/classes:${readFileSync(join(project, 'classpath'), 'utf8')}`;
  const broken = join(folder, 'broken.pdf');
  writeFileSync(
    broken,
    readFileSync(whole.path, 'latin1').replace('/AFRelationship /Data', '/AFRelationshiq /Data'),
    'latin1',
  );
  const files = [...certificates.map(({ path }) => path), broken];
  const said = await run('java', ['-cp', classpath, 'CheckPdfA', ...files], project);
  const verdicts = said.split('\n').filter((line) => line.startsWith('/'));
  assert.deepEqual(
    verdicts.map((line) => line.split(' ').at(-1)),
    ['compliant', 'compliant', 'compliant', 'faulty'],
    said,
  );
});

test('a certificate has one page with the record in both languages, and not what is hidden', {
  skip: skipUnlessInstalled('pdftotext', 'pdfinfo'),
}, async () => {
  for (const { path } of certificates) assert.match(await run('pdfinfo', [path]), /^Pages: +1$/m);
  const text = await run('pdftotext', ['-layout', whole.path, '-']);
  for (const part of ['齐白石 Qi Baishi', '纸本设色', '备案方 Filed by', platform.caller, whole.filingNo])
    assert.ok(text.includes(part), `${part}: ${text}`);
  assert.match(text, /CNY 1,280,000\.00 \(128000000\)/);
  assert.match(text, /正面\.jpg\s+SHA-256\s+(ab){32}/);
  assert.match(text, /It is not judicial evidence\./);
  const hidden = await run('pdftotext', ['-layout', withoutPrice.path, '-']);
  assert.match(hidden, /价格 Price +未披露 not disclosed/);
  assert.match(hidden, /备案哈希 Hash +未披露 not disclosed/);
  const bytes = readFileSync(withoutPrice.path, 'latin1');
  const { hash } = (await getEvidence(service, platform, withoutPrice.filingNo)).json;
  for (const secret of ['128000000', '1,280,000', hash]) assert.ok(!bytes.includes(secret), secret);
});

test('artseal verify verifies a certificate, and no changed one', async (t) => {
  const verified = await verify(whole.path);
  assert.match(verified[0] ?? '', new RegExp(`^VERIFIED: the filing ${whole.filingNo} is in the log`));
  assert.ok(verified.includes(`  caller     ${platform.caller}`), verified.join('\n'));
  assert.ok((await verify(withoutPrice.path)).includes('  hidden     price'));
  const changed = async (name: string, from: string, to: string, found: RegExp, code: number) => {
    const pdf = readFileSync(whole.path, 'latin1');
    assert.ok(pdf.includes(from), from);
    const file = join(temporaryFolder(t), name);
    writeFileSync(file, pdf.replace(from, to), 'latin1');
    await artsealWith({}).errors(code, ['verify', file, '--key', vkey], found);
  };
  await changed('era', '"value":"1947"', '"value":"1847"', /the era in the bundle is not the one/, 4);
  await changed(
    'caller',
    platform.caller,
    platform.caller.replace('platform', 'plotform'),
    /commits to another record/,
    4,
  );
  await changed(
    'filter',
    '/Type /EmbeddedFile',
    '/Type /EmbeddedFile\n/Filter /FlateDecode',
    /has changed the PDF/,
    3,
  );
  const second = '<<\n/Type /EmbeddedFile\n/Length 2\n>>\nstream\n{}\nendstream';
  await changed('second', '%%EOF', `${second}\n%%EOF`, /more than one attachment/, 3);
  await changed('none', '/Type /EmbeddedFile', '/Type /EmbeddedFilf', /has no attached bundle/, 3);
});

test('a phone that scans the QR code gets a verified record, in its language', {
  skip: skipUnlessInstalled('chromium', 'pdftoppm', 'zbarimg'),
}, async (t) => {
  const port = new URL(service.publicUrl).port;
  const browser = await startChromium(t, `--host-resolver-rules=MAP ${host}:80 127.0.0.1:${port}`);
  for (const { path, filingNo } of certificates) {
    const image = path.replace('.pdf', '');
    await run('pdftoppm', ['-r', '300', '-png', '-singlefile', path, image]);
    const link = (await run('zbarimg', ['--quiet', '--raw', `${image}.png`])).trim();
    assert.ok(link.startsWith(`http://${host}/verify#bundle=`), link);
    const page = await browser.open('about:blank');
    await page.send('Emulation.setDeviceMetricsOverride', {
      ...{ width: 390, height: 844, deviceScaleFactor: 3, mobile: true },
    });
    await page.send('Emulation.setLocaleOverride', { locale: 'zh-CN' });
    const loaded = page.next('Page.loadEventFired');
    await page.send('Page.navigate', { url: link });
    await loaded;
    const verdict = 'document.getElementById("verdict")';
    await page.until(`${verdict}.textContent !== ""`);
    assert.equal(
      await page.value(`${verdict}.className`),
      'good',
      await page.value(`${verdict}.textContent`),
    );
    const shown = await page.value<string>('document.getElementById("result").innerText');
    if (path !== long.path) assert.match(shown, /齐白石 Qi Baishi/);
    assert.ok(shown.includes(filingNo));
    assert.equal(await page.value('document.documentElement.scrollWidth <= 390'), true);
    assert.equal(await page.value('document.getElementById("from-code").hidden'), false);
    assert.deepEqual(
      page.requests.filter((url) => !url.startsWith(`http://${host}/verify`) && url !== 'about:blank'),
      [],
    );
    assert.deepEqual(page.complaints, []);
  }
});

test('the attachment is verified by a Go program on golang.org/x/mod/sumdb', {
  skip: skipUnlessInstalled('pdfdetach') || skip,
}, async () => {
  const attached = join(folder, 'evidence.json');
  await run('pdfdetach', ['-save', '1', '-o', attached, withoutPrice.path]);
  const record = JSON.parse(await run(program, [attached, vkey]));
  assert.deepEqual([record.author, record.caller], [scroll.author, platform.caller]);
  assert.match(record.price, /^[0-9a-f]{64}$/);
  writeFileSync(attached, readFileSync(attached, 'utf8').replace('"value":"1947"', '"value":"1847"'));
  await assert.rejects(run(program, [attached, vkey]), /another era/);
});

test('too many certificates at a time are rejected, and the next one is made', async (t: TestContext) => {
  const target = `/api/v1/filing/${whole.filingNo}/certificate`;
  const client = createRestClient(service.publicUrl, platform);
  const answers = await Promise.all(Array.from({ length: 8 }, () => client.send('GET', target)));
  const statuses = answers.map(({ status }) => status);
  t.diagnostic(statuses.join());
  assert.ok(statuses.includes(200) && statuses.includes(429), statuses.join());
  assert.ok(
    statuses.every((status) => [200, 429].includes(status)),
    statuses.join(),
  );
  assert.equal((await client.send('GET', target)).status, 200);
});
