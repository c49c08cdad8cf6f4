import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createAddressPolicy } from '../../../src/events/webhooks/target.ts';
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
