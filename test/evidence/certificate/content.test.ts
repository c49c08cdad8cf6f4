import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test } from 'node:test';
import { contentOf } from '../../../src/evidence/certificate/content.ts';
import { createDrawing } from '../../../src/evidence/certificate/drawing.ts';
import { type Proven, readVerifierKey, verifyBundle } from '../../../src/evidence/verifier/index.ts';
import { begunS, filingAt, salted, smallLog } from '../verifier/small-log.ts';

const log = smallLog(4);
const bundle = JSON.stringify(log.saltedBundle(log.record(salted(filingAt(begunS + 5, 5)))));
const verdict = verifyBundle(bundle, { keys: log.keys.map(({ vkey }) => readVerifierKey(vkey)) });
assert.ok(verdict.isProven);
const { proven } = verdict;
const facts = { publicUrl: 'https://registry.example', currency: 'CNY', atMs: 0 };
const linesOf = (content: ReturnType<typeof contentOf>) =>
  content.sections.flatMap(({ lines }) => lines.flatMap(({ zh, en }) => [zh, en])).join('\n');

test('a certificate names the QR code and the page only if the address of the service is known', () => {
  assert.match(linesOf(contentOf(proven, bundle, facts)), /QR code, or open https:.*\/verify and choose/);
  const content = contentOf(proven, bundle, { ...facts, publicUrl: undefined });
  assert.equal(content.link, '');
  assert.doesNotMatch(linesOf(content), /QR|\u4e8c\u7ef4\u7801|\/verify/);
});

test('the caption of a code without the bundle says to choose the file', () => {
  const long = JSON.stringify({
    ...JSON.parse(bundle),
    record: randomBytes(2_000).toString('hex'),
    disclosed: {},
  });
  const { link, linkCaption } = contentOf(proven, long, facts);
  assert.deepEqual(
    [link, linkCaption.en],
    ['https://registry.example/verify', 'Scan, then choose this PDF file'],
  );
});

test('the longest record fits on the page beside many verifier keys', async () => {
  const texts = ['author', 'era', 'size', 'material', 'condition', 'caller'].map(
    (name) => [name, '🖌'.repeat(200)] as const,
  );
  const record = { ...proven.record, members: new Map([...proven.record.members, ...texts]) };
  const [signer] = proven.signers;
  assert.ok(signer);
  const signers = Array.from({ length: 8 }, () => ({ ...signer, vkey: `${'o'.repeat(180)}${signer.vkey}` }));
  const many: Proven = { ...proven, record, signers };
  const pdf = await createDrawing()(contentOf(many, bundle, facts));
  assert.ok(pdf.length > 10_000);
});
