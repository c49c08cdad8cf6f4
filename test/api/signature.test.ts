import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { METHODS } from 'node:http';
import { test } from 'node:test';
import {
  type CanonicalRequest,
  canonicalMessage,
  checkTimestamp,
  clockDifferenceMaxS,
  readCredentials,
  signature,
} from '../../src/api/authentication.ts';
import { signedHeaders } from '../../src/client/sign.ts';
import { parseRequestTarget } from '../../src/http/rest/http-message.ts';
import { documentText } from '../support/documents.ts';
import { createRandom, type Random } from '../support/random.ts';
import { documentedSignature } from '../support/signed-request.ts';
import vectors from '../testdata/signature.json' with { type: 'json' };

const sha256 = (bytes: string | Uint8Array) => createHash('sha256').update(bytes).digest('hex');

for (const vector of vectors) {
  test(`message and signature are those of an independent program: ${vector.name}`, () => {
    const request = { ...vector, body: Buffer.from(vector.body) };
    assert.equal(sha256(vector.body), vector.bodySha256);
    assert.equal(canonicalMessage(request), vector.message);
    assert.equal(signature(request, vector.apiSecret), vector.signature);
    assert.equal(documentedSignature(vector.apiSecret, vector), vector.signature);
  });
}

test('the test vectors of the guide are right', () => {
  const guide = documentText('docs/platforms/signing.md', 'Test vectors');
  const [apiSecret = ''] = /sk_sandbox_\w+/.exec(guide) ?? [];
  const tables = guide.split('|---|---|').slice(1);
  assert.equal(tables.length, 2);
  for (const table of tables) {
    const cell = (name: string) => new RegExp(`^\\| ${name} \\| \`(.*)\` \\|$`, 'm').exec(table)?.[1] ?? '';
    const [method = '', target = ''] = cell('method, target').split(' ');
    const body = cell('body');
    const vector = { method, target, body, timestamp: cell('`X-Timestamp`'), nonce: cell('`X-Nonce`') };
    assert.ok(vector.timestamp !== '' && vector.nonce !== '' && target !== '');
    assert.equal(cell('hash of the body'), sha256(body));
    assert.equal(cell('`X-Signature`'), documentedSignature(apiSecret, vector));
  }
});

test('the client signs as documented, with a new nonce each time', () => {
  const credentials = { apiKey: 'ak', apiSecret: 'sk' };
  const unsigned = { method: 'POST', target: '/api/v1/filing', body: '{"author":"齐白石"}' };
  const sign = () => {
    const headers = signedHeaders(credentials, unsigned);
    const { 'X-Api-Key': apiKey, 'X-Timestamp': timestamp = '', 'X-Nonce': nonce = '' } = headers;
    assert.equal(apiKey, credentials.apiKey);
    const expected = documentedSignature(credentials.apiSecret, { ...unsigned, timestamp, nonce });
    assert.equal(headers['X-Signature'], expected);
    return nonce;
  };
  assert.notEqual(sign(), sign());
});

/** The bodies that a reading of a message may have, found by their hash. */
const bodies = Array.from({ length: 4_000 }, (_, index) => {
  const body = Buffer.from(index === 0 ? '' : String(index));
  return { body, hash: sha256(body) };
});
const bodyOfHash = new Map(bodies.map(({ body, hash }) => [hash, body]));

/** Whether the server would check the signature of a request at this time of its clock. */
function isValid({ method, target, timestamp, nonce }: CanonicalRequest, nowMs: number): boolean {
  try {
    parseRequestTarget(target);
    const sent = { apiKey: ['ak'], timestamp: [timestamp], nonce: [nonce], signature: ['0'.repeat(64)] };
    checkTimestamp(readCredentials(sent).timestamp, nowMs);
    return METHODS.includes(method);
  } catch {
    return false;
  }
}

/** All valid requests with a known body that have this message. */
function readings(message: string, nowMs: number): CanonicalRequest[] {
  const methodEnd = message.indexOf('/');
  const method = message.slice(0, methodEnd);
  const lengths = Array.from({ length: message.length - methodEnd }, (_, length) => length);
  return lengths.flatMap((length) => {
    const targetEnd = methodEnd + length;
    const body = bodyOfHash.get(message.slice(targetEnd, targetEnd + 64));
    if (body === undefined) return [];
    const target = message.slice(methodEnd, targetEnd);
    const timestamp = message.slice(targetEnd + 64, targetEnd + 74);
    const request = { method, target, body, timestamp, nonce: message.slice(targetEnd + 74) };
    return isValid(request, nowMs) ? [request] : [];
  });
}

function assertOneReading(request: CanonicalRequest, nowMs: number, random: Random): void {
  const others = readings(canonicalMessage(request), nowMs).filter(({ target }) => target !== request.target);
  const shown = [request, ...others].map((each) => ({ ...each, body: String(each.body) }));
  const message = `seed ${random.seed}: one message, several requests: ${JSON.stringify(shown, undefined, 1)}`;
  assert.deepEqual(others, [], message);
}

const nonceCharacters = 'ABCXYZabcdefxyz0123456789._~+/=-';
const targets = [
  '/',
  '/api/v1/filing',
  '/api/v1/provenance/AS-2026-000001',
  '/api/v1/provenance/',
  '/api/v1/x?a=',
];

/**
 * Requests made so that the end of their message reads as another hash, timestamp and nonce: `kept` digits of
 * the hash go on as the first digits of the other one, which the timestamp and the nonce complete.
 */
function* craftedRequests(
  random: Random,
  kept: number,
): Generator<{ request: CanonicalRequest; nowMs: number }> {
  const bodyByLastDigits = new Map(bodies.map(({ body, hash }) => [hash.slice(-kept), body]));
  for (const { hash } of bodies) {
    const timestamp = hash.slice(kept, kept + 10);
    const body = bodyByLastDigits.get(hash.slice(0, kept));
    if (!/^[1-9][0-9]{9}$/.test(timestamp) || body === undefined) continue;
    const otherTimestamp = Number(timestamp) + random.below(2 * clockDifferenceMaxS) - clockDifferenceMaxS;
    const nonce = `${hash.slice(kept + 10)}${otherTimestamp}${random.text(nonceCharacters, kept)}`;
    const request = {
      method: random.pick(['GET', 'POST']),
      target: random.pick(targets),
      body,
      timestamp,
      nonce,
    };
    yield { request, nowMs: Number(timestamp) * 1_000 };
  }
}

for (const kept of [1, 2, 3]) {
  test(`no choice of body and nonce makes a second request of a message: ${kept} digits of the hash kept`, () => {
    const random = createRandom();
    let tried = 0;
    for (const { request, nowMs } of craftedRequests(random, kept)) {
      tried += 1;
      if (isValid(request, nowMs)) assertOneReading(request, nowMs, random);
    }
    assert.ok(tried > 0);
  });
}

test('a nonce that is a whole hash with its timestamp is longer than nonces may be', () => {
  const nonce = `${bodies[1]?.hash}1795222800n`.slice(10);
  assert.equal(nonce.length, 65);
  const request = { method: 'GET', target: '/', body: new Uint8Array(), timestamp: '1795222800', nonce };
  assert.equal(isValid(request, 1_795_222_800_000), false);
  assert.equal(isValid({ ...request, nonce: nonce.slice(1) }, 1_795_222_800_000), true);
});
