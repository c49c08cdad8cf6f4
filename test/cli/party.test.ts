import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { partiesPerFileMax, partyFileBytesMax } from '../../src/cli/party.ts';
import { runHere } from '../support/artseal.ts';
import { issueInto } from '../support/issued.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const atStripe = {
  ARTSEAL_PAYMENT_PROVIDER: 'stripe',
  ARTSEAL_STRIPE_API_KEY: 'sk_test_1',
  ARTSEAL_STRIPE_WEBHOOK_SECRET: 'whsec_1',
};

const seller = ['--platform', 'platform-1', '--role', 'SELLER', '--id', 's'];
const account = ['--provider-ids', 'account=acct_1'];
const buyer = (name: string) => ({ customer: `cus_${name}`, paymentMethod: `pm_${name}` });

/** A data folder with platform-1 and platform-2, and `artseal party` on it. */
async function deployment(t: TestContext, settings: Record<string, string> = atStripe) {
  const folder = temporaryFolder(t);
  const dataDir = join(folder, 'data');
  await issueInto(dataDir, 2);
  const party = (...words: readonly string[]) =>
    runHere(['party', ...words], { ...settings, ARTSEAL_DATA_DIR: dataDir });
  const file = join(folder, 'parties.json');
  return {
    party,
    file,
    importing: (content: object | string, ...words: readonly string[]) => {
      writeFileSync(file, typeof content === 'string' ? content : JSON.stringify(content));
      return party('import', file, ...words);
    },
    listed: async (...words: readonly string[]) => {
      const { code, printed, errors } = await party('list', '--json', ...words);
      assert.equal(code, 0, errors.join('\n'));
      return printed.map((line) => {
        const { platform, role, partyId, providerIds } = JSON.parse(line);
        return [platform, role, partyId, providerIds];
      });
    },
  };
}

test('a party is added, listed, replaced and removed', async (t) => {
  const { party, listed } = await deployment(t);
  const named = ['--platform', 'platform-1', '--role', 'buyer', '--id', '买方 1'];
  const added = await party('add', ...named, '--provider-ids', 'customer=cus_1, paymentMethod=pm_1');
  assert.deepEqual(
    [added.code, added.printed],
    [0, ['BUYER   买方 1  customer=cus_1,paymentMethod=pm_1  platform-1']],
  );
  await party('add', ...named, '--provider-ids', 'customer=cus_2,paymentMethod=card_2');
  await party(
    ...['add', '--platform', 'operator', '--role', 'SELLER', '--id', 's', '--provider-ids', 'account=acct_1'],
  );
  const providerIds = { customer: 'cus_2', paymentMethod: 'card_2' };
  assert.deepEqual(await listed(), [
    ['platform-1', 'BUYER', '买方 1', providerIds],
    ['operator', 'SELLER', 's', { account: 'acct_1' }],
  ]);
  assert.equal((await listed('--platform', 'platform-2')).length, 0);
  assert.equal((await listed('--role', 'seller')).length, 1);
  const removed = await party('remove', ...named, '--json', '--reason', 'moved away');
  assert.partialDeepStrictEqual(JSON.parse(removed.printed[0] ?? ''), {
    partyId: '买方 1',
    providerIds,
  });
  assert.equal((await listed('--platform', 'platform-1')).length, 0);
});

test('an error names the arguments of the command line', async (t) => {
  const { party, listed } = await deployment(t);
  for (const [words, message] of [
    [['add', '--platform', 'nobody', ...seller.slice(2), ...account], 'NOT_FOUND: NAME names no platform'],
    [['list', '--platform', 'nobody'], 'NOT_FOUND: NAME names no platform.*artseal platform list'],
    [['remove', ...seller], 'NOT_FOUND: --id is not registered.*artseal party list'],
    [
      ['add', ...seller, '--provider-ids', 'account=cus_1'],
      'providerIds.account must be the id of a connected account',
    ],
    [
      ['add', ...seller, '--provider-ids', 'acct_1'],
      'providerIds.account is required.*--provider-ids must have account, and no',
    ],
    [['add', ...seller, ...account, '--reason', 'a\nb'], '--reason must have no control characters'],
    [['add', ...seller.slice(0, 5), 'x'.repeat(129), ...account], '--id must have 1 to 128 characters'],
  ] as const) {
    const { code, errors } = await party(...words);
    assert.equal(code, 1, words.join(' '));
    assert.match(errors.join('\n'), new RegExp(message));
  }
  assert.deepEqual(await listed(), []);
});

test('a name that is given twice is rejected', async (t) => {
  const { party, listed } = await deployment(t);
  const names = 'account=acct_1, account=acct_2';
  const { code, errors } = await party('add', ...seller, '--provider-ids', names);
  assert.deepEqual(
    [code, errors],
    [2, ['artseal: party add takes account once in --provider-ids; see artseal party --help']],
  );
  assert.deepEqual(await listed(), []);
});

test('the simulated provider needs no registered parties', async (t) => {
  const { party, importing, listed } = await deployment(t, {});
  for (const { code, errors } of [
    await party('add', ...seller, ...account),
    await importing({ platforms: {} }),
  ]) {
    assert.equal(code, 1);
    assert.match(errors.join('\n'), /needs no registered parties$/);
  }
  assert.deepEqual(await listed(), []);
});

test('a file of several platforms is imported, after a trial that changes nothing', async (t) => {
  const { party, importing, listed } = await deployment(t);
  await party(
    ...['add', '--platform', 'platform-1', '--role', 'BUYER', '--id', 'left'],
    ...['--provider-ids', 'customer=cus_9,paymentMethod=pm_9'],
  );
  const platforms = {
    'platform-1': { buyers: { b: buyer('1'), left: buyer('8') }, sellers: { s: { account: 'acct_1' } } },
    'platform-2': { buyers: { b: buyer('2') } },
  };
  const trial = await importing({ platforms }, '--dry-run');
  assert.deepEqual(
    [trial.code, trial.printed],
    [0, ['3 added, 1 replaced, 0 unchanged (dry run: nothing was written)']],
  );
  assert.equal((await listed()).length, 1);
  assert.deepEqual((await importing({ platforms })).printed, ['3 added, 1 replaced, 0 unchanged']);
  assert.deepEqual(await listed(), [
    ['platform-1', 'BUYER', 'b', buyer('1')],
    ['platform-1', 'BUYER', 'left', buyer('8')],
    ['platform-1', 'SELLER', 's', { account: 'acct_1' }],
    ['platform-2', 'BUYER', 'b', buyer('2')],
  ]);
  const again = await importing({ platforms }, '--json');
  assert.deepEqual(JSON.parse(again.printed[0] ?? ''), { added: 0, replaced: 0, unchanged: 4 });
});

test('a file with the parties of one platform is imported', async (t) => {
  const { importing, listed } = await deployment(t);
  const file = { buyers: { 'b-1': buyer('1') }, sellers: { 's-1': 'acct_1' } };
  assert.equal((await importing(file, '--platform', 'platform-2')).code, 0);
  assert.deepEqual(await listed(), [
    ['platform-2', 'BUYER', 'b-1', buyer('1')],
    ['platform-2', 'SELLER', 's-1', { account: 'acct_1' }],
  ]);
});

test('all faults of a file are reported with their places, and none of its parties is registered', async (t) => {
  const { file, importing, listed } = await deployment(t);
  const wrong = {
    notes: '',
    platforms: {
      'platform-1': {
        buyers: { good: buyer('1'), '': buyer('1'), b: 'cus_1', c: { ...buyer('1'), email: 5 }, d: null },
        sellers: { s: 7, 'two\nlines': 'acct_1', t: { account: `acct_${'1'.repeat(300)}` } },
        sellerz: {},
      },
      nobody: {},
      'platform-2': [],
    },
  };
  const { code, printed, errors } = await importing(wrong);
  assert.deepEqual([code, printed], [1, []]);
  const one = 'platforms["platform-1"]';
  assert.deepEqual(
    errors.map((line) => {
      assert.ok(line.startsWith(`artseal: ${file}: `), line);
      return line.slice(`artseal: ${file}: `.length).replace(/ (is|must|names) .*/, '');
    }),
    [
      '["notes"]',
      `${one}["sellerz"]`,
      `the id of ${one}.buyers[""]`,
      `${one}.buyers["b"].customer`,
      `${one}.buyers["b"].paymentMethod`,
      `${one}.buyers["c"]`,
      `${one}.buyers["d"].customer`,
      `${one}.buyers["d"].paymentMethod`,
      `${one}.sellers["s"].account`,
      `the id of ${one}.sellers["two\ufffdlines"]`,
      `${one}.sellers["t"].account`,
      'platforms["platform-2"]',
      'platforms["nobody"]',
    ],
  );
  assert.deepEqual(await listed(), []);
});

test('of very many faults, some are reported and the others counted', async (t) => {
  const { importing } = await deployment(t);
  const buyers = Object.fromEntries(Array.from({ length: 500 }, (_, place) => [`b${place}`, {}]));
  const { errors } = await importing({ buyers }, '--platform', 'platform-1');
  assert.equal(errors.length, 21);
  assert.match(errors.at(-1) ?? '', /: and 980 more$/);
});

for (const [what, text, message] of [
  [
    'a party that is given twice',
    `{"buyers": {"b": ${JSON.stringify(buyer('1'))},\n  "\\u0062": ${JSON.stringify(buyer('2'))}}}`,
    'line 2, column 3 is invalid: the member b is repeated',
  ],
  ['no JSON', '{"buyers":\n{,', 'line 2, column 2 is invalid: the JSON is broken'],
  ['a list', '[]', 'the file is invalid: it must be one JSON object'],
] as const)
  test(`a file with ${what} is rejected, and the error names the line`, async (t) => {
    const { file, importing, listed } = await deployment(t);
    const { code, errors } = await importing(text, '--platform', 'platform-1');
    assert.deepEqual([code, errors.length], [1, 1]);
    assert.ok((errors[0] ?? '').startsWith(`artseal: ${file}: ${message}`), errors.join());
    assert.deepEqual(await listed(), []);
  });

test('either the file or the command line names the platforms', async (t) => {
  const { importing } = await deployment(t);
  const ofOne = { buyers: {} };
  assert.match((await importing(ofOne)).errors.join('\n'), /platforms is required without --platform/);
  const ofMany = await importing({ platforms: {} }, '--platform', 'platform-1');
  assert.match(ofMany.errors.join('\n'), /\["platforms"\] is unknown here/);
  const ofNobody = await importing(ofOne, '--platform', 'nobody');
  assert.match(ofNobody.errors.join('\n'), /--platform names no platform/);
});

test('a file may have the maximum number of parties, and not one more', async (t) => {
  const { importing, listed } = await deployment(t);
  const named = Array.from({ length: partiesPerFileMax + 1 }, (_, place): [string, string] => [
    `s${place}`,
    `acct_${place}`,
  ]);
  const sellers = Object.fromEntries(named);
  const refused = await importing({ sellers }, '--platform', 'platform-1');
  assert.match(refused.errors.join('\n'), /the file must have at most 2000 parties, not 2001: split it/);
  const others = Object.fromEntries(named.slice(1));
  const { printed } = await importing({ sellers: others }, '--platform', 'platform-1');
  assert.deepEqual(printed, [`${partiesPerFileMax} added, 0 replaced, 0 unchanged`]);
  assert.equal((await listed()).length, partiesPerFileMax);
  const platforms = Object.fromEntries(named.map(([name]) => [name, {}]));
  const nobodys = await importing({ platforms });
  assert.match(nobodys.errors.join('\n'), /the file must have at most 2000 platforms, not 2001: split it/);
});

test('the command reads no more than the maximum size of a file, even if it is endless', {
  timeout: 60_000,
}, async (t) => {
  const { party, file, importing } = await deployment(t);
  const { code, errors } = await importing(`{"buyers": {}}${' '.repeat(partyFileBytesMax)}`);
  assert.deepEqual([code, errors], [1, [`artseal: ${file} is larger than 8 MiB: split it`]]);
  const endless = await party('import', '/dev/zero');
  assert.deepEqual([endless.code, endless.errors.length], [1, 1]);
  assert.match(endless.errors.join(), /^artseal: \/dev\/zero is larger than 8 MiB/);
});
