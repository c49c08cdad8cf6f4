import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  checkRegistration,
  emailKey,
  emailMax,
  isEmail,
  noticeDetail,
  noticeDetailMax,
} from '../../src/domain/registration.ts';

test('an address has one @, dot-atoms before it, and a domain of two labels or more', () => {
  const label = 'a'.repeat(63);
  const longest = `${'x'.repeat(64)}@${[label, label, `${'a'.repeat(58)}`].join('.')}.co`;
  assert.equal(longest.length, emailMax);
  for (const good of [
    'a@b.co',
    "o'neil+art=x@sub.example.com",
    'A.B@EXAMPLE.COM',
    '1@xn--fiq.example',
    longest,
  ])
    assert.ok(isEmail(good), good);
  for (const bad of [
    ...['', 'a', '@b.co', 'a@', 'a@b', 'a@@b.co', 'a@b@c.co', 'a b@c.co', ' a@b.co', 'a@b.co ', 'a@b .co'],
    ...[
      '.a@b.co',
      'a.@b.co',
      'a..b@c.co',
      '"a b"@c.co',
      'a@[127.0.0.1]',
      'a@-b.co',
      'a@b-.co',
      'a@b..co',
      'a@.b.co',
    ],
    ...[
      'a@b.co\n',
      'a@b.co\r\nBcc: c@d.co',
      'a\0@b.co',
      'a,c@b.co',
      '<a@b.co>',
      'a:b@c.co',
      '齐@b.co',
      'a@齐.co',
    ],
    ...[`${'x'.repeat(65)}@b.co`, `${longest}m`, `a@${'b'.repeat(64)}.co`],
  ])
    assert.ok(!isEmail(bad), JSON.stringify(bad));
});

test('addresses that differ in case or outer spaces are the same', () => {
  assert.equal(emailKey(' Qi@EXAMPLE.com\t'), emailKey('qi@example.com'));
  assert.notEqual(emailKey('q.i@example.com'), emailKey('qi@example.com'));
});

test('each text has its bounds, and all that break them are named', () => {
  const good = { email: 'a@b.co', name: 'x'.repeat(128), intendedUse: '\u{1F58C}'.repeat(1_000) };
  assert.deepEqual(checkRegistration(good), []);
  const broken = { email: 'a', name: `${good.name}x`, intendedUse: 'two\nlines' };
  assert.deepEqual(
    checkRegistration(broken).map(({ field }) => field),
    ['email', 'name', 'intendedUse'],
  );
  assert.equal(checkRegistration({ email: '', name: '', intendedUse: '' }).length, 3);
});

test('what a mail server says is kept on one line, without controls, up to a bound', () => {
  assert.equal(noticeDetail('550\r\n no\t such \x1b[31muser\u202e '), '550 no such [31muser');
  const long = noticeDetail('\u{1F58C}'.repeat(noticeDetailMax));
  assert.ok(long.length <= noticeDetailMax && long.endsWith('…') && long.isWellFormed());
  assert.ok(noticeDetail('a\ud800b').isWellFormed());
});
