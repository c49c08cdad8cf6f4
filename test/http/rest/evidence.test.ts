import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import { askProvenance, fileArtwork } from '../../support/calls.ts';
import { createManualClock } from '../../support/clock.ts';
import { fileScope } from '../../support/file-scope.ts';
import { assertRejected } from '../../support/rejected.ts';
import { artwork } from '../../support/samples.ts';
import { startService } from '../../support/service.ts';

const service = await startService(fileScope);
const platform = await service.platform();

/** The evidence hash, computed from request and response without any code of the service. */
function recomputed(requestBody: string, answer: { filingNo: string; timestamp: string }): string {
  const sent = JSON.parse(requestBody);
  const record: Record<string, unknown> = { ...sent, filingNo: answer.filingNo, timestamp: answer.timestamp };
  const members = Object.keys(record).sort();
  const canonical = members.map((name) => `${JSON.stringify(name)}:${JSON.stringify(record[name])}`);
  return createHash('sha256')
    .update(`{${canonical.join(',')}}`)
    .digest('hex');
}

/** test/domain/text.test.ts has all characters. */
const texts: readonly (readonly [what: string, text: string])[] = [
  ['composed', 'Jos\u00e9 \u00c5'],
  ['decomposed', 'Jose\u0301 A\u030a'],
  ['spaces around it', '  Qi   Baishi \u00a0'],
  ['emoji joined', '👩🏽\u200d🎨 🏳️\u200d🌈'],
  ['quotes, slashes and backslashes', '"\'`/\\ </script> &amp; %00 {x} \\u0041'],
  ['noncharacters and private use', '\uffff\ufdd0\ue000\u{10ffff}'],
  ['what looks like SQL', "'); DROP TABLE filing; --"],
];

for (const [what, text] of texts) {
  test(`a text is stored, returned and hashed exactly as sent: ${what}`, async () => {
    const sent = { ...artwork, author: text, era: text, size: text, material: text, condition: text };
    const body = JSON.stringify(sent);
    const filed = await fileArtwork(service, platform, { body });
    assert.equal(filed.status, 200, filed.text);
    assert.equal(filed.json.hash, recomputed(body, filed.json));
    const asked = await askProvenance(service, platform, filed.json.filingNo);
    assert.equal(asked.json.author, text);
    const { filingNo } = filed.json;
    const stored = await service.execute({ kind: 'GetFiling', filingNo, owner: undefined });
    const { author, era, size, material, condition } = stored ?? assert.fail();
    assert.deepEqual({ author, era, size, material, condition, price: artwork.price }, sent);
  });
}

test('escapes in a text do not change its hash', async () => {
  const plain = JSON.stringify({ ...artwork, author: '齐 🖌 / é' });
  const escaped = plain.replace('齐 🖌 / é', '\\u9f50 \\ud83d\\udd8c \\/ \\u00E9');
  for (const body of [plain, escaped]) {
    const { filingNo, hash, timestamp } = (await fileArtwork(service, platform, { body })).json;
    assert.equal(hash, recomputed(plain, { filingNo, timestamp }));
  }
});

test('the business time zone decides time, number, provenance date and quota month', async (t) => {
  const midnightMs = Date.UTC(2026, 11, 31, 16);
  const clock = createManualClock(midnightMs - 1);
  const shanghai = await startService(t, { clock, env: { ARTSEAL_TIME_ZONE: 'Asia/Shanghai' } });
  const by = await shanghai.platform('ENTERPRISE', 1);
  const now = () => ({ timestamp: String(Math.floor(clock.nowMs() / 1_000)) });
  const before = (await fileArtwork(shanghai, by, now())).json;
  assert.deepEqual([before.filingNo, before.timestamp], ['AS-2026-000001', '2026-12-31T23:59:59+08:00']);
  assertRejected(await fileArtwork(shanghai, by, now()), 429, 'QUOTA_EXCEEDED', /2026-12/);
  clock.advance(1);
  const after = (await fileArtwork(shanghai, by, now())).json;
  assert.deepEqual([after.filingNo, after.timestamp], ['AS-2027-000001', '2027-01-01T00:00:00+08:00']);
  const asked = await askProvenance(shanghai, await shanghai.platform(), after.filingNo, now());
  assert.deepEqual(asked.json.records, [{ event: 'SUBMITTED', at: '2027-01-01' }]);
});
