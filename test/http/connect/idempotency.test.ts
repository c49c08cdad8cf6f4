import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import type { CallOptions } from '@connectrpc/connect';
import { Key_Tier } from '../../../gen/artseal/v1/admin_pb.ts';
import { tester } from '../../support/audit-log.ts';
import { fileArtwork } from '../../support/calls.ts';
import { fileScope } from '../../support/file-scope.ts';
import { openLedger } from '../../support/ledger.ts';
import { artwork } from '../../support/samples.ts';
import { startService } from '../../support/service.ts';
import { tokenTerms } from '../../support/tokens.ts';
import { errorOf, typedClients, typedError } from '../../support/typed-clients.ts';
import { transports } from './transports.ts';

const painting = { ...artwork, price: BigInt(artwork.price) };
const service = await startService(fileScope);
const ledger = openLedger(fileScope, service);

let keys = 0;
/** An idempotency key that was not used before. */
const newKey = () => {
  keys += 1;
  return `key-${keys}`;
};

/** The options of a call with a key, and the headers of its response. */
function keyed(key: string) {
  const seen: { replayed: string | null; requestId: string | null } = { replayed: null, requestId: null };
  const options: CallOptions = {
    // The server has its own request ids.
    headers: { 'Idempotency-Key': key, 'X-Request-Id': 'mine' },
    onHeader: (headers) => {
      seen.replayed = headers.get('Idempotent-Replayed');
      seen.requestId = headers.get('X-Request-Id');
    },
  };
  return { seen, options };
}

for (const name of ['Connect over HTTP/1.1', 'gRPC over HTTP/2', 'gRPC-Web over HTTP/1.1']) {
  const transport = transports[name] ?? assert.fail(name);

  test(`a CreateFiling that is sent twice under a key files once: ${name}`, async () => {
    const { filings } = typedClients(transport(service.internalUrl, await service.token()));
    const before = ledger.holdings();
    const key = newKey();
    const [first, second] = [keyed(key), keyed(key)];
    const filed = await filings.createFiling(painting, first.options);
    assert.deepEqual(await filings.createFiling(painting, second.options), filed);
    assert.deepEqual([first.seen.replayed, second.seen.replayed], [null, 'true']);
    assert.notEqual(second.seen.requestId, first.seen.requestId);
    assert.deepEqual(ledger.holdings(), { ...before, filings: before.filings + 1 });
    assert.notEqual((await filings.createFiling(painting)).filingNo, filed.filingNo, 'without a key');
  });

  test(`a stored error is repeated, and another message is rejected: ${name}`, async () => {
    const { filings } = typedClients(transport(service.internalUrl, await service.token()));
    const key = newKey();
    const call = (message: object) => filings.createFiling(message, keyed(key).options);
    const { message } = await typedError(call({}), 'VALIDATION_FAILED');
    const again = await errorOf(call({}));
    assert.equal(again.rawMessage, message);
    assert.equal(again.metadata.get('Idempotent-Replayed'), 'true');
    await typedError(call(painting), 'IDEMPOTENCY_KEY_REUSED');
  });
}

test('a caller gets the same response over every protocol and with each of its tokens', async () => {
  const tokens = [];
  for (const _ of ['first', 'second']) {
    tokens.push((await service.issuance.issueToken(tokenTerms('two tokens'), tester)).token);
  }
  const key = newKey();
  const answers = [];
  for (const transport of Object.values(transports)) {
    for (const token of tokens) {
      const { filings } = typedClients(transport(service.internalUrl, token));
      answers.push(await filings.createFiling(painting, keyed(key).options));
    }
  }
  for (const answer of answers) assert.deepEqual(answer, answers[0]);
});

/** test/api/admission.test.ts has all malformed keys. */
test('a malformed key is rejected by calls that write, and ignored by calls that read', async () => {
  const { filings, escrows } = await service.clients();
  const malformed = keyed('a b').options;
  await typedError(filings.createFiling(painting, malformed), 'IDEMPOTENCY_KEY_INVALID');
  await filings.listFilings({}, malformed);
  await escrows.listEscrows({}, malformed);
  const key = newKey();
  const { filingNo } = await filings.createFiling(painting, keyed(key).options);
  const { seen, options } = keyed(key);
  assert.equal((await filings.getFiling({ filingNo }, options)).filing?.filingNo, filingNo);
  assert.equal(seen.replayed, null);
});

test('a repeated CreateKey or RotateKey issues one key and returns the same secret, which is stored encrypted', async () => {
  const { admin } = await service.operator();
  const key = newKey();
  const create = (name = 'Gallery') => admin.createKey({ name, tier: Key_Tier.TRIAL }, keyed(key).options);
  const first = await create();
  assert.deepEqual(await create(), first);
  const { key: made, apiSecret } = first;
  assert.ok(made !== undefined && apiSecret !== '');
  const platform = { apiKey: made.apiKey, apiSecret };
  assert.equal((await fileArtwork(service, platform)).status, 200, 'the secret signs');
  const rotation = keyed(newKey()).options;
  const rotate = () => admin.rotateKey({ keyId: made.keyId }, rotation);
  assert.deepEqual(await rotate(), await rotate());
  for (const file of ['artseal.db', 'artseal.db-wal']) {
    const bytes = readFileSync(join(service.dataDir, file));
    assert.ok(bytes.length > 0 && !bytes.includes(apiSecret), file);
  }
  await typedError(create('Another'), 'IDEMPOTENCY_KEY_REUSED');
});
