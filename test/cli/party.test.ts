import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { partyFileBytesMax } from '../../src/cli/party.ts';
import { partiesPerImportMax } from '../../src/domain/party.ts';
import { type Connection, commandsOver, connections, testEveryConnection } from '../support/connections.ts';
import { issueInto } from '../support/issued.ts';
import { stripeSettings } from '../support/samples.ts';
import { openTestProvider } from '../support/simulator.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const seller = ['--platform', 'platform-1', '--role', 'SELLER', '--id', 's'];
const account = ['--provider-ids', 'account=acct_1'];
const buyer = (name: string) => ({ customer: `cus_${name}`, paymentMethod: `pm_${name}` });

/** A registry with platform-1 and platform-2, and `artseal party` over a connection. */
async function deployment(t: TestContext, connection: Connection = 'a stopped folder') {
  const folder = temporaryFolder(t);
  const dataDir = join(folder, 'data');
  await issueInto(dataDir, 2);
  const artseal = await commandsOver(t, connection, {
    env: stripeSettings,
    dataDir,
    provider: openTestProvider(t),
  });
  const file = join(folder, 'parties.json');
  const importOf = (content: object | string, ...words: readonly string[]) => {
    writeFileSync(file, typeof content === 'string' ? content : JSON.stringify(content));
    return ['party', 'import', file, ...words] as const;
  };
  return {
    artseal,
    file,
    /** Imports a file and returns what the command prints. */
    imported: (...of: Parameters<typeof importOf>) => artseal.text(importOf(...of)),
    /** The error lines of an import that fails. */
    rejected: async (...of: Parameters<typeof importOf>) =>
      (await artseal.errors(1, importOf(...of))).split('\n'),
    listed: async (flags = '') =>
      (await artseal.list(`party list${flags}`)).map(({ platform, role, partyId, providerIds }) => [
        ...[platform, role, partyId, providerIds],
      ]),
  };
}

for (const connection of connections)
  test(`over ${connection}: parties are added, replaced, imported, listed and removed`, async (t) => {
    const { artseal, imported, listed } = await deployment(t, connection);
    const named = ['--platform', 'platform-1', '--role', 'buyer', '--id', '买方 1'];
    const add = (ids: string) => artseal.text(['party', 'add', ...named, '--provider-ids', ids]);
    assert.equal(
      await add('customer=cus_1, paymentMethod=pm_1'),
      'BUYER   买方 1  customer=cus_1,paymentMethod=pm_1  platform-1',
    );
    await add('customer=cus_2,paymentMethod=card_2');
    await artseal.text('party add --platform operator --role SELLER --id s --provider-ids account=acct_1');
    const providerIds = { customer: 'cus_2', paymentMethod: 'card_2' };
    const added = [
      ['platform-1', 'BUYER', '买方 1', providerIds],
      ['operator', 'SELLER', 's', { account: 'acct_1' }],
    ];
    assert.deepEqual(await listed(), added);

    const several = Object.fromEntries(
      Array.from({ length: 100 }, (_, number) => [`b${number}`, buyer('1')]),
    );
    const platforms = {
      'platform-1': { buyers: { '买方 1': buyer('8') }, sellers: { s: { account: 'acct_1' } } },
      'platform-2': { buyers: several },
    };
    const counts = '101 added, 1 replaced, 0 unchanged';
    assert.equal(await imported({ platforms }, '--dry-run'), `${counts} (dry run: nothing was written)`);
    assert.deepEqual(await listed(), added);
    assert.equal(await imported({ platforms }), counts);
    assert.deepEqual(JSON.parse(await imported({ platforms }, '--json')), {
      ...{ added: 0, replaced: 0, unchanged: 102 },
    });
    // More than a page.
    assert.equal((await listed()).length, 103);
    assert.equal((await listed(' --platform platform-2')).length, 100);
    assert.deepEqual(await listed(' --role seller'), [
      ['operator', 'SELLER', 's', { account: 'acct_1' }],
      ['platform-1', 'SELLER', 's', { account: 'acct_1' }],
    ]);
    const removed = await artseal.json(['party', 'remove', ...named, '--reason', 'moved away']);
    assert.partialDeepStrictEqual(removed, { partyId: '买方 1', providerIds: buyer('8') });
    assert.equal((await listed(' --platform platform-1')).length, 1);
    const again = await artseal.errors(1, ['party', 'remove', ...named]);
    assert.match(again, /^artseal: NOT_FOUND: --id is not registered.*See artseal party list$/);
  });

test('an error names the arguments of the command line', async (t) => {
  const { artseal, listed } = await deployment(t);
  for (const [words, code, message] of [
    [['add', '--platform', 'nobody', ...seller.slice(2), ...account], 1, 'NOT_FOUND: NAME names no platform'],
    [['list', '--platform', 'nobody'], 1, 'NOT_FOUND: NAME names no platform.*artseal platform list'],
    [
      ['add', ...seller, '--provider-ids', 'account=cus_1'],
      1,
      'providerIds.account must be the id of a connected',
    ],
    [
      ['add', ...seller, '--provider-ids', 'acct_1'],
      1,
      'account is required.*--provider-ids must have account, and no',
    ],
    [['add', ...seller, '--provider-ids', 'account=a,account=b'], 2, 'takes account once in --provider-ids'],
  ] as const)
    assert.match(await artseal.errors(code, ['party', ...words]), new RegExp(message));
  assert.deepEqual(await listed(), []);
});

test('a file with the parties of one platform is imported', async (t) => {
  const { imported, listed } = await deployment(t);
  const file = { buyers: { 'b-1': buyer('1') }, sellers: { 's-1': 'acct_1' } };
  await imported(file, '--platform', 'platform-2');
  assert.deepEqual(await listed(), [
    ['platform-2', 'BUYER', 'b-1', buyer('1')],
    ['platform-2', 'SELLER', 's-1', { account: 'acct_1' }],
  ]);
});

test('all faults of a file are reported with their places, and none of its parties is registered', async (t) => {
  const { file, rejected, listed } = await deployment(t);
  const wrong = {
    notes: '',
    platforms: {
      'platform-1': {
        buyers: { good: buyer('1'), '': buyer('1'), b: 'cus_1', c: { ...buyer('1'), email: 5 }, d: null },
        sellers: { s: 7, 'two\nlines': 'acct_1', t: { account: `acct_${'1'.repeat(300)}` } },
        sellerz: {},
      },
      'platform-2': [],
    },
  };
  const places = async (content: object) =>
    (await rejected(content)).map((line) => {
      assert.ok(line.startsWith(`artseal: ${file}: `), line);
      return line.slice(`artseal: ${file}: `.length).replace(/ (is|must|names) .*/, '');
    });
  const one = 'platforms["platform-1"]';
  assert.deepEqual(await places(wrong), ['["notes"]', `${one}["sellerz"]`, 'platforms["platform-2"]']);
  const { sellerz: _, ...known } = wrong.platforms['platform-1'];
  const nobody = { buyers: { b: buyer('1') } };
  assert.deepEqual(await places({ platforms: { 'platform-1': known, nobody } }), [
    `the id of ${one}.buyers[""]`,
    `${one}.buyers["b"].customer`,
    `${one}.buyers["b"].paymentMethod`,
    `${one}.buyers["c"]`,
    `${one}.buyers["d"].customer`,
    `${one}.buyers["d"].paymentMethod`,
    `${one}.sellers["s"].account`,
    `the id of ${one}.sellers["two\ufffdlines"]`,
    `${one}.sellers["t"].account`,
    'platforms["nobody"]',
  ]);
  assert.deepEqual(await listed(), []);
});

test('of very many faults, some are reported and the others counted', async (t) => {
  const { rejected } = await deployment(t);
  const buyers = Object.fromEntries(Array.from({ length: 500 }, (_, place) => [`b${place}`, {}]));
  const errors = await rejected({ buyers }, '--platform', 'platform-1');
  assert.equal(errors.length, 21);
  assert.match(errors.at(-1) ?? '', /: and 980 more$/);
});

test('a file that is no JSON object, or repeats a member, is rejected with the line', async (t) => {
  const { file, rejected, listed } = await deployment(t);
  const twice = `{"buyers": {"b": ${JSON.stringify(buyer('1'))},\n  "\\u0062": ${JSON.stringify(buyer('2'))}}}`;
  for (const [text, message] of [
    [twice, 'line 2, column 3 is invalid: the member b is repeated'],
    ['{"buyers":\n{,', 'line 2, column 2 is invalid: the JSON is broken'],
    ['[]', 'the file is invalid: it must be one JSON object'],
  ] as const) {
    const [error = '', ...more] = await rejected(text, '--platform', 'platform-1');
    assert.ok(error.startsWith(`artseal: ${file}: ${message}`), error);
    assert.deepEqual(more, []);
  }
  assert.deepEqual(await listed(), []);
});

test('either the file or the command line names the platforms', async (t) => {
  const { rejected } = await deployment(t);
  for (const [content, platform, message] of [
    [{ buyers: {} }, [], /platforms is required without --platform/],
    [{ platforms: {} }, ['--platform', 'platform-1'], /\["platforms"\] is unknown here/],
    [{ buyers: { b: buyer('1') } }, ['--platform', 'nobody'], /--platform names no platform/],
  ] as const)
    assert.match((await rejected(content, ...platform)).join('\n'), message);
});

test('a file may have the maximum number of parties, and not one more', async (t) => {
  const { imported, rejected, listed } = await deployment(t);
  const named = Array.from({ length: partiesPerImportMax + 1 }, (_, place) => `s${place}`);
  const all = Object.fromEntries(named.map((name) => [name, 'acct_1']));
  const [tooMany] = await rejected({ sellers: all }, '--platform', 'platform-1');
  assert.match(tooMany ?? '', /the parties of the file must be at most 2000, not 2001: split them$/);
  const { s0: _, ...sellers } = all;
  const counts = await imported({ sellers }, '--platform', 'platform-1');
  assert.equal(counts, `${partiesPerImportMax} added, 0 replaced, 0 unchanged`);
  assert.equal((await listed()).length, partiesPerImportMax);
});

test('the command reads no more than the maximum size of a file, even if it is endless', {
  timeout: 60_000,
}, async (t) => {
  const { artseal, file, rejected } = await deployment(t);
  const errors = await rejected(`{"buyers": {}}${' '.repeat(partyFileBytesMax)}`);
  assert.deepEqual(errors, [`artseal: ${file} is larger than 8 MiB: split it`]);
  const endless = await artseal.errors(1, 'party import /dev/zero');
  assert.match(endless, /^artseal: \/dev\/zero is larger than 8 MiB[^\n]*$/);
});

testEveryConnection('party');
