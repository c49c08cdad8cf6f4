import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checkTarget, createAddressPolicy } from '../../../src/events/webhooks/target.ts';
import { networksOf } from './receiver.ts';

/** Addresses by kind: the first and the last of each network, and well-known ones. */
const forbidden: Readonly<Record<string, readonly string[]>> = {
  'this machine': [
    ...['0.0.0.0', '0.255.255.255', '127.0.0.0', '127.0.0.1', '127.255.255.255', '::', '::1'],
    ...['::ffff:127.0.0.1', '::ffff:7f00:1', '0:0:0:0:0:ffff:7f00:0001', '::ffff:0:0', '::FFFF:127.0.0.1'],
  ],
  'in a private network': [
    ...['10.0.0.0', '10.255.255.255', '172.16.0.0', '172.31.255.255', '192.168.0.0', '192.168.255.255'],
    ...['100.64.0.0', '100.127.255.255', '100.100.100.200', '::ffff:10.1.2.3', '::ffff:a00:1'],
    ...['fc00::', 'fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff', 'fd00:ec2::254', 'fd20:ce::254'],
    ...['fec0::', 'feff:ffff::1'],
  ],
  'on this link': [
    ...['169.254.0.0', '169.254.169.254', '169.254.170.2', '169.254.255.255', '::ffff:a9fe:a9fe'],
    ...['fe80::', 'fe80::1%lo', 'fe80::a9fe:a9fe', 'febf:ffff::1'],
  ],
  'a service of the cloud for its machines': ['168.63.129.16', '::ffff:168.63.129.16'],
  'for multicast': [
    '224.0.0.0',
    '224.0.0.1',
    '239.255.255.255',
    'ff00::',
    'ff02::1',
    'ff0e::1',
    '::ffff:e000:1',
  ],
  'for special purposes': [
    ...[
      '192.0.0.0',
      '192.0.0.192',
      '192.0.0.255',
      '192.0.2.0',
      '192.0.2.255',
      '192.88.99.0',
      '192.88.99.255',
    ],
    ...['198.18.0.0', '198.19.255.255', '198.51.100.0', '198.51.100.255', '203.0.113.0', '203.0.113.255'],
    ...['240.0.0.0', '255.255.255.254', '255.255.255.255', '::ffff:255.255.255.255'],
    ...['::2', '::127.0.0.1', '::8.8.8.8', '::ffff:0:7f00:1', '64:ff9b::7f00:1', '64:ff9b::8.8.8.8'],
    ...['64:ff9b:1::a00:1', '100::1', '1fff:ffff::1', '2001::', '2001:0:7f00:1::', '2001:1ff:ffff::1'],
    ...[
      '2001:db8::',
      '2001:db8:ffff::1',
      '2002::',
      '2002:7f00:1::1',
      '2002:808:808::1',
      '3fff::',
      '3fff:fff::1',
    ],
    ...['4000::', '5f00::1', 'e000::1', 'fbff::1', 'fe00::1', 'fe7f::1'],
  ],
  'no address': [
    '',
    'localhost',
    '127.1',
    '0x7f.0.0.1',
    '8.8.8.8:53',
    '[::1]',
    '8.8.8.8/32',
    ' 8.8.8.8',
    '8.8.8.8\0',
  ],
};

/** The neighbours of those networks. */
const open = [
  ...['1.0.0.0', '8.8.8.8', '9.255.255.255', '11.0.0.0', '100.63.255.255', '100.128.0.0', '126.255.255.255'],
  ...['128.0.0.0', '168.63.129.15', '168.63.129.17', '169.253.255.255', '169.255.0.0', '172.15.255.255'],
  ...['172.32.0.0', '191.255.255.255', '192.0.1.0', '192.0.3.0', '192.88.98.255', '192.88.100.0'],
  ...['192.167.255.255', '192.169.0.0', '198.17.255.255', '198.20.0.0', '198.51.99.255', '198.51.101.0'],
  ...['203.0.112.255', '203.0.114.0', '223.255.255.255', '::ffff:8.8.8.8', '::ffff:808:808'],
  ...[
    '2000::',
    '2000:ffff::1',
    '2001:200::',
    '2001:4860:4860::8888',
    '2001:db7:ffff::1',
    '2001:db9::',
    '2003::',
  ],
  ...['2606:4700:4700::1111', '3ffe:ffff::1', '3fff:1000::', '3fff:ffff::1'],
];

test('addresses that are not globally reachable are forbidden', () => {
  const policy = createAddressPolicy([]);
  for (const [kind, addresses] of Object.entries(forbidden))
    for (const address of addresses) assert.equal(policy(address), kind, address);
});

test('globally reachable addresses are allowed', () => {
  const policy = createAddressPolicy([]);
  for (const address of open) assert.equal(policy(address), undefined, address);
});

test('only networks in the settings are allowed in addition', () => {
  const policy = createAddressPolicy(
    networksOf('10.20.0.0/16', '169.254.169.254', 'fd00:1::/32', '::ffff:192.168.7.0/120'),
  );
  const allowed = [
    '10.20.0.0',
    '10.20.255.255',
    '::ffff:10.20.1.1',
    '169.254.169.254',
    'fd00:1::1',
    '192.168.7.9',
  ];
  for (const address of [...allowed, '8.8.8.8']) assert.equal(policy(address), undefined, address);
  const others = [
    '10.19.255.255',
    '10.21.0.0',
    '169.254.169.253',
    'fd00:2::1',
    '192.168.8.0',
    '127.0.0.1',
    '::1',
  ];
  for (const address of others) assert.notEqual(policy(address), undefined, address);
});

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

/** This machine in every form that the URL parser reads, by the form that it makes of it. */
const formsOfThisMachine: Readonly<Record<string, readonly string[]>> = {
  '127.0.0.1': [
    ...['127.0.0.1', '127.0.0.1.', '127.1', '127.0.1', '2130706433', '0x7f000001', '0x7f.1'],
    ...['0x7F.0x0.0x0.0x1', '017700000001', '0177.0.0.1', '0177.0.0.01', '0x7f.0.01'],
    ...['%31%32%37.0.0.1', '①②⑦.⓪.⓪.①', '127。0。0。1'],
  ],
  '0.0.0.0': ['0.0.0.0', '0', '0x0'],
  '[::]': ['[::]'],
  '[::ffff:7f00:1]': ['[::ffff:127.0.0.1]', '[::ffff:7f00:1]', '[0:0:0:0:0:FFFF:127.0.0.1]'],
  localhost: ['localhost', 'LocalHost', 'ⓛocalhost'],
  'localhost.': ['LOCALHOST.'],
  'a.b.localhost': ['a.b.localhost'],
};

test('this machine is no host, in whatever form', () => {
  for (const [host, forms] of Object.entries(formsOfThisMachine))
    for (const form of forms)
      assert.equal(
        checkTarget(`https://${form}:8443/`, rules),
        `must have a host at a public address: ${host} is this machine`,
      );
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
