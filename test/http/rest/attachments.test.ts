import assert from 'node:assert/strict';
import { test } from 'node:test';
import { proven } from '../../evidence/log/outsider.ts';
import { fileArtwork } from '../../support/calls.ts';
import { createManualClock } from '../../support/clock.ts';
import { fileScope } from '../../support/file-scope.ts';
import { publishAll } from '../../support/publication.ts';
import { assertRejected } from '../../support/rejected.ts';
import { artwork } from '../../support/samples.ts';
import { startService } from '../../support/service.ts';
import { send } from '../../support/signed-request.ts';

const clock = createManualClock();
const service = await startService(fileScope, { clock });
const platform = await service.platform();

const attachment = { name: 'front.jpg', sha256: 'ab'.repeat(32) };
const wrong: Readonly<Record<string, readonly [attachments: unknown, message: RegExp]>> = {
  '21 attachments': [Array.from({ length: 21 }, () => attachment), /^attachments must be at most 20$/],
  'no name': [
    [attachment, { ...attachment, name: '' }],
    /^attachments\[1\]\.name is required: 1 to 200 characters$/,
  ],
  'a name of 201 characters': [
    [{ ...attachment, name: '📷'.repeat(201) }],
    /^attachments\[0\]\.name must .*\b1\b.*\b200\b/,
  ],
  'an invisible character': [
    [{ ...attachment, name: 'gpj.\u202etnorf' }],
    /^attachments\[0\]\.name .*U\+202E/,
  ],
  'no digest': [[{ name: 'front.jpg' }], /^attachments\[0\]\.sha256 must be 64 lower-case hex digits$/],
  'a short digest': [
    [{ ...attachment, sha256: 'ab'.repeat(31) }],
    /^attachments\[0\]\.sha256 must be 64 lower-case hex digits$/,
  ],
  'an upper-case digest': [
    [{ ...attachment, sha256: 'AB'.repeat(32) }],
    /^attachments\[0\]\.sha256 must be 64 lower-case hex digits$/,
  ],
  'a line feed after a digest': [
    [{ ...attachment, sha256: `${attachment.sha256}\n` }],
    /^attachments\[0\]\.sha256 must be 64 lower-case hex digits$/,
  ],
  'a further member': [[{ ...attachment, size: 1 }], /size/],
  'an object': [attachment, /attachments/],
};
for (const [what, [list, message]] of Object.entries(wrong))
  test(`a filing with ${what} among its attachments is rejected, and nothing is filed`, async () => {
    const { size } = await service.execute({ kind: 'GetTree' });
    const body = JSON.stringify({ ...artwork, attachments: list });
    assertRejected(await fileArtwork(service, platform, { body }), 400, 'VALIDATION_FAILED', message);
    assert.equal((await service.execute({ kind: 'GetTree' })).size, size);
  });

test('a filing with 20 attachments answers the documented members, is read in the order of the request, and proven', async () => {
  const many = Array.from({ length: 20 }, (_, nth) => ({
    name: `${'📷'.repeat(198)}${String(20 - nth).padStart(2, '0')}`,
    sha256: nth.toString(16).padStart(64, '0'),
  }));
  const body = JSON.stringify({ ...artwork, attachments: many });
  const filed = await fileArtwork(service, platform, { body });
  assert.equal(filed.status, 200, filed.text);
  assert.deepEqual(Object.keys(filed.json), Object.keys((await fileArtwork(service, platform)).json));
  const { filingNo, hash } = filed.json;
  const read = await send(service.publicUrl, platform, { target: `/api/v1/filing/${filingNo}` });
  assert.deepEqual(read.json.attachments, many);
  const { filings } = (await send(service.publicUrl, platform, { target: '/api/v1/filing?pageSize=2' })).json;
  assert.deepEqual(
    filings.map((filing: { attachments: unknown[] }) => filing.attachments.length),
    [0, 20],
  );
  await publishAll(service, clock);
  const evidence = await send(service.publicUrl, platform, { target: `/api/v1/filing/${filingNo}/evidence` });
  const vkey = (await (await fetch(`${service.publicUrl}/log/vkey`)).text()).trimEnd();
  assert.equal(proven(evidence.json, vkey).record.attachments, JSON.stringify(many));
  assert.equal(evidence.json.hash, hash);
});
