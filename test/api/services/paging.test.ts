import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test } from 'node:test';
import { createPaging, pageSize } from '../../../src/api/services/paging.ts';

const key = randomBytes(32);
const { check, query, token } = createPaging(key);
const caller = { callerId: 7, caller: 'Gallery One' };
const anyRequest = { $typeName: 'a.List', pageSize: 0, pageToken: '' };
const tokenFor = (next: number | undefined) => token({ items: [], next }, anyRequest, caller);
const fieldsOf = (request: { pageSize?: number; pageToken?: string }) =>
  check({ ...anyRequest, ...request }, caller).map(({ field }) => field);

test('the last page has no token, and no token is the first page', () => {
  assert.equal(tokenFor(undefined), '');
  assert.deepEqual(query(anyRequest, caller), { from: undefined, size: pageSize.default });
});

test('a token leads to the page that it was given for', () => {
  for (const next of [1, 2, 50, 999_999, Number.MAX_SAFE_INTEGER]) {
    const pageToken = tokenFor(next);
    assert.deepEqual(fieldsOf({ pageToken }), []);
    assert.equal(query({ ...anyRequest, pageSize: 7, pageToken }, caller).from, next);
    assert.match(pageToken, /^[\w-]+$/);
  }
});

test('a token reveals nothing of its position', () => {
  const places = [1, 2, 9, 1_000_000, Number.MAX_SAFE_INTEGER];
  assert.equal(new Set(places.map((next) => tokenFor(next).length)).size, 1, 'not even by its length');
  for (const next of places) {
    const bytes = Buffer.from(tokenFor(next), 'base64url');
    assert.equal(bytes.indexOf(placeBytes(next)), -1);
    assert.equal(bytes.indexOf(`after:${next}:`), -1);
  }
  assert.ok(tokenFor(1).length <= 64);
});

function placeBytes(next: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64BE(BigInt(next));
  return bytes;
}

test('a token that is altered, cut, lengthened or made up is rejected', () => {
  const given = tokenFor(12);
  const flipped = Array.from(Buffer.from(given, 'base64url').entries(), ([index, byte]) => {
    const bytes = Buffer.from(given, 'base64url');
    bytes[index] = byte ^ 1;
    return bytes.toString('base64url');
  });
  const encoded = (text: string) => Buffer.from(text).toString('base64url');
  const others = [
    ...['x', ' ', `${given}A`, `${given}=`, ` ${given}`, `${given}\n`, given.toLowerCase()],
    ...Array.from(given, (_, length) => given.slice(0, length)).slice(1),
    ...[encoded('12'), encoded('after:12'), encoded('after:12:0123456789abcdef')],
    ...[randomBytes(36).toString('base64url'), 'A'.repeat(48), 'A'.repeat(60_000)],
  ];
  for (const pageToken of [...flipped, ...others]) {
    assert.deepEqual(fieldsOf({ pageToken }), ['pageToken'], pageToken);
  }
});

test('a token of another list, other filters, another caller or another deployment is rejected', () => {
  const request = { ...anyRequest, state: 1, filingNo: '' };
  const pageToken = token({ items: [], next: 3 }, request, caller);
  assert.deepEqual(check({ ...request, pageSize: 9, pageToken }, caller), [], 'pages may differ in size');
  for (const other of [
    { ...request, state: 2 },
    { ...request, filingNo: 'AS-2026-000001' },
    { ...request, $typeName: 'another.List' },
  ]) {
    const [violation] = check({ ...other, pageToken }, caller);
    assert.equal(violation?.field, 'pageToken');
  }
  const fieldsFor = (paging: typeof createPaging, by: typeof caller, under: Buffer) =>
    paging(under)
      .check({ ...request, pageToken }, by)
      .map(({ field }) => field);
  assert.deepEqual(fieldsFor(createPaging, { ...caller, callerId: 8 }, key), ['pageToken']);
  assert.deepEqual(fieldsFor(createPaging, caller, randomBytes(32)), ['pageToken']);
  assert.deepEqual(fieldsFor(createPaging, { ...caller, caller: 'Renamed' }, key), []);
});

test('a page has 1 to 100 items; 0 means the default', () => {
  for (const size of [1, 50, 99, 100]) {
    assert.deepEqual(fieldsOf({ pageSize: size }), []);
    assert.equal(query({ ...anyRequest, pageSize: size }, caller).size, size);
  }
  assert.equal(query(anyRequest, caller).size, 50);
  for (const size of [-1, 101, 2 ** 31 - 1, -(2 ** 31)])
    assert.deepEqual(fieldsOf({ pageSize: size }), ['pageSize']);
});
