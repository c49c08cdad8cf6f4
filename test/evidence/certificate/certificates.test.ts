import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { createCertificates } from '../../../src/evidence/certificate/certificates.ts';
import { begunS, filingAt, salted, smallLog } from '../verifier/small-log.ts';

const log = smallLog(4);
const bundle = log.saltedBundle(log.record(salted(filingAt(begunS + 5, 5))));
const idleMs = 30_000;

function certificates(t: TestContext) {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  // The thread ends with the test.
  t.after(() => t.mock.timers.tick(idleMs));
  const { certificateOf } = createCertificates({
    ...{ publicUrl: 'https://registry.example', currency: 'CNY' },
    verifierKeys: () => log.keys.map(({ vkey }) => vkey),
  });
  return { make: (callerId = 1) => certificateOf(bundle, callerId, begunS * 1_000) };
}

const isPdf = (file: Uint8Array) => Buffer.from(file).subarray(0, 5).toString() === '%PDF-';

test('a certificate that is ordered while an idle thread ends is made', async (t) => {
  const { make } = certificates(t);
  assert.ok(isPdf(await make()));
  t.mock.timers.tick(idleMs);
  assert.ok(isPdf(await make()));
});

test('a caller gets four certificates at a time, and the fifth call is rejected', async (t) => {
  const { make } = certificates(t);
  const four = Array.from({ length: 4 }, () => make());
  await assert.rejects(make(), /Four certificates are being made for you/);
  assert.ok((await Promise.all([...four, make(2)])).every(isPdf));
  assert.ok(isPdf(await make()));
});
