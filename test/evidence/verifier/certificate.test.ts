import assert from 'node:assert/strict';
import { test } from 'node:test';
import { bundleTextOf } from '../../../src/evidence/verifier/certificate.ts';

const pdf = (...parts: readonly string[]) => Buffer.from(`%PDF-1.7\n${parts.join('\n')}`);
const attached = (length = '/Length 2') =>
  `<<\n/Type /EmbeddedFile\n/Params << /Size 2 >>\n${length}\n>>\nstream\n{}\nendstream`;

test('the bundle that is attached to a PDF is read', () => {
  assert.equal(bundleTextOf(pdf(attached())), '{}');
});

for (const [what, length] of Object.entries({
  'a length in another object': '/Length 1 0 R',
  'a length past its end': '/Length 4000',
  'no length': '',
  'a compressed attachment': '/Length 2 /Filter /FlateDecode',
}))
  test(`for a PDF with ${what}, the failure names what to do`, () => {
    assert.throws(() => bundleTextOf(pdf(attached(length))), /has changed the PDF: save the attachment/);
  });

test('a hostile PDF of four megabytes is rejected at once', () => {
  for (const part of ['<</Type /EmbeddedFile ', '<<', '<</Type /EmbeddedFile >>\n', '>> \n', '<<\n\n\n\n']) {
    const file = pdf('<</Type /EmbeddedFile ', part.repeat(4_000_000 / part.length));
    const fromMs = performance.now();
    assert.throws(() => bundleTextOf(file), /save the attachment/);
    assert.ok(performance.now() - fromMs < 3_000, JSON.stringify(part));
  }
});
