import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checkPage, pageQuery, pageSize, pageToken } from '../../src/rpc/paging.ts';

const anyRequest = { $typeName: 'a.List', pageSize: 0, pageToken: '' };
const tokenFor = (next: number | undefined) => pageToken({ items: [], next }, anyRequest);
const fieldsOf = (request: { pageSize?: number; pageToken?: string }) =>
  checkPage({ ...anyRequest, ...request }).map(({ field }) => field);

test('the last page has no token', () => {
  assert.equal(tokenFor(undefined), '');
  assert.deepEqual(pageQuery({ pageSize: 0, pageToken: '' }), { from: undefined, size: pageSize.default });
});

test('a token leads to the page that it was given for', () => {
  for (const next of [1, 2, 50, 999_999, Number.MAX_SAFE_INTEGER]) {
    const token = tokenFor(next);
    assert.deepEqual(fieldsOf({ pageToken: token }), []);
    assert.equal(pageQuery({ ...anyRequest, pageSize: 7, pageToken: token }).from, next);
    assert.match(token, /^[\w-]+$/);
  }
});

test('what is not a token to the letter is refused', () => {
  const token = tokenFor(12);
  const encoded = (text: string) => Buffer.from(text).toString('base64url');
  const others = [
    'x',
    ' ',
    token.slice(0, -1),
    `${token}A`,
    `${token}=`,
    ` ${token}`,
    `${token}\n`,
    token.toLowerCase(),
    encoded('12'),
    encoded('after:'),
    encoded('after:x'),
    encoded('after: 12'),
    encoded('after:012'),
    encoded('after:1e3'),
    encoded('after:0x10'),
    encoded('after:1.5'),
    encoded('after:9007199254740993'),
    encoded('after:Infinity'),
    encoded('before:12'),
  ];
  for (const pageToken of others) assert.deepEqual(fieldsOf({ pageToken }), ['pageToken'], pageToken);
});

test('a token of another list, or of the same one with other filters, is refused', () => {
  const request = { ...anyRequest, state: 1, filingNo: '' };
  const token = pageToken({ items: [], next: 3 }, request);
  assert.deepEqual(checkPage({ ...request, pageSize: 9, pageToken: token }), []);
  for (const other of [
    { ...request, state: 2 },
    { ...request, filingNo: 'AS-2026-000001' },
    { ...request, $typeName: 'another.List' },
  ]) {
    const [violation] = checkPage({ ...other, pageToken: token });
    assert.equal(violation?.field, 'pageToken');
  }
});

test('a page has 1 to 100 items; 0 means the default', () => {
  for (const size of [1, 50, 99, 100]) {
    assert.deepEqual(fieldsOf({ pageSize: size }), []);
    assert.equal(pageQuery({ pageSize: size, pageToken: '' }).size, size);
  }
  assert.equal(pageQuery({ pageSize: 0, pageToken: '' }).size, 50);
  for (const size of [-1, 101, 2 ** 31 - 1, -(2 ** 31)])
    assert.deepEqual(fieldsOf({ pageSize: size }), ['pageSize']);
});

test('both fields of a page are named if both are wrong', () => {
  assert.deepEqual(fieldsOf({ pageSize: -1, pageToken: 'x' }), ['pageSize', 'pageToken']);
});
