import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checkTarget, createAddressPolicy } from '../../../src/events/webhooks/target.ts';
import { networksOf } from './receiver.ts';

const rules = { policy: createAddressPolicy([]), plainLoopback: false };

test('an https URL is accepted, with any port, path and query', () => {
  const taken = [
    ...[
      'https://hooks.example.com',
      'HTTPS://Hooks.Example.com:8443/a/b?c=d&e=%20',
      'https://hooks.example.com:1/',
    ],
    ...[
      'https://hooks.example.com:65535/',
      'https://8.8.8.8/',
      'https://[2606:4700::1111]:8443/',
      'https://叶.example/',
    ],
    ...['https://hooks/', 'https://localhost.example.com/', 'https://notlocalhost/', 'https://a_b.example/'],
    `https://hooks.example.com/${'x'.repeat(2_048 - 26)}`,
  ];
  for (const url of taken) assert.equal(checkTarget(url, rules), undefined, url);
});

test('any other URL breaks a rule', () => {
  const absolute = 'must be an absolute https:// URL of at most 2048 characters';
  const machine = (host: string) => `must have a host at a public address: ${host} is this machine`;
  const rejected: readonly (readonly [string, string])[] = [
    ['', absolute],
    ['hooks.example.com', absolute],
    ['/hook', absolute],
    ['//hooks.example.com', absolute],
    ['https://', absolute],
    ['https:hooks.example.com', absolute],
    ['https:/hooks.example.com/', absolute],
    ['https:///hooks.example.com/', absolute],
    ['https:\\\\127.1', absolute],
    ['https://hooks.example.com\\@127.0.0.1/', absolute],
    ['https://256.1.1.1/', absolute],
    ['https://[::1/', absolute],
    ['https://[fe80::1%25lo]/', absolute],
    ['https://hooks.example.com:65536/', absolute],
    ['http://hooks.example.com/', absolute],
    ['wss://hooks.example.com/', absolute],
    ['javascript:alert(1)', absolute],
    [' https://hooks.example.com/', absolute],
    ['https://hooks.example.com/\n', absolute],
    ['https://hooks.example.com/a\tb', absolute],
    ['https://hooks.example.com/a b', absolute],
    ['https://hooks.example.com/\0', absolute],
    [`https://hooks.example.com/${'x'.repeat(2_048 - 25)}`, absolute],
    ['https://hooks.exam\u200bple.com/', 'must not have U+200B ZERO WIDTH SPACE'],
    ['https://ann@hooks.example.com/', 'must have no user name and no password'],
    ['https://:secret@hooks.example.com/', 'must have no user name and no password'],
    ['https://8.8.8.8@127.0.0.1/', 'must have no user name and no password'],
    ['https://hooks.example.com/#', 'must have no #'],
    ['https://hooks.example.com/#part', 'must have no #'],
    ['https://hooks.example.com:0/', 'must have a port from 1 to 65535'],
    ['https://localhost/', machine('localhost')],
    ['https://LOCALHOST./', machine('localhost.')],
    ['https://a.b.localhost:8443/', machine('a.b.localhost')],
    ['https://2130706433/', machine('127.0.0.1')],
    ['https://[::]/', machine('[::]')],
    [
      'https://169.254.169.254/latest',
      'must have a host at a public address: 169.254.169.254 is on this link',
    ],
    [
      'https://[fd00:ec2::254]/',
      'must have a host at a public address: [fd00:ec2::254] is in a private network',
    ],
  ];
  for (const [url, rule] of rejected) assert.equal(checkTarget(url, rules), rule, url);
});

test('hosts in the networks of the settings are accepted, localhost if any of its addresses is', () => {
  const named = { ...rules, policy: createAddressPolicy(networksOf('10.20.0.0/16', '::1')) };
  for (const url of [
    'https://10.20.1.1/',
    'https://[::ffff:10.20.1.1]/',
    'https://localhost/',
    'https://[::1]/',
  ])
    assert.equal(checkTarget(url, named), undefined, url);
  for (const url of ['https://10.21.1.1/', 'https://127.0.0.1/'])
    assert.match(checkTarget(url, named) ?? '', /^must have a host at a public address/, url);
});

test('http is accepted only to this machine, and only if the settings allow it', () => {
  const sandbox = {
    policy: createAddressPolicy(networksOf('127.0.0.0/8', '::1', '10.20.0.0/16')),
    plainLoopback: true,
  };
  const own = [
    ...['http://127.0.0.1/', 'HTTP://127.0.0.1:3000/hook?a=b', 'http://[::1]:8080/', 'http://localhost/'],
    ...['http://hooks.localhost:1/', 'http://127.9.9.9/', 'http://[::ffff:127.0.0.1]/', 'http://2130706433/'],
  ];
  for (const url of own) {
    assert.equal(checkTarget(url, sandbox), undefined, url);
    assert.match(
      checkTarget(url, rules) ?? '',
      /^must be an absolute https:\/\/ URL of at most 2048 characters$/,
      url,
    );
  }
  const others = [
    ...['http://hooks.example.com/', 'http://8.8.8.8/', 'http://10.20.1.1/', 'http://169.254.169.254/'],
    ...['http://0.0.0.0/', 'http://[::]/', 'http://localhost.example.com/', 'http://127.0.0.1.example.com/'],
  ];
  for (const url of others) assert.match(checkTarget(url, sandbox) ?? '', /or http:\/\/ at localhost/, url);
  for (const url of ['http://ann@127.0.0.1/', 'http://127.0.0.1/#a', 'http://127.0.0.1:0/'])
    assert.match(checkTarget(url, sandbox) ?? '', /^must have/, url);
});
