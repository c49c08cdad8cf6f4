import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isPage } from '../../src/domain/address.ts';

test('a buyer is sent to pages over https, or of this machine, whose host nothing disguises', () => {
  for (const url of ['https://bank.example/act?of=1', 'http://127.0.0.1:8080/', 'http://[::1]/'])
    assert.ok(isPage(url), url);
  for (const url of [
    ...['javascript:alert(1)', 'http://bank.example/', 'ftp://127.0.0.1/', '/3ds', ''],
    ...['https://bank.example@evil.example/', 'https://:word@evil.example/'],
  ])
    assert.ok(!isPage(url), url);
  assert.ok(!isPage(undefined));
});
