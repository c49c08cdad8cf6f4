import assert from 'node:assert/strict';
import { test } from 'node:test';
import { csvLine } from '../../src/cli/platform.ts';
import { commandsOver, connections, testEveryConnection } from '../support/connections.ts';
import { send } from '../support/signed-request.ts';

for (const connection of connections)
  test(`over ${connection}: platforms are listed and shown, changed, suspended and resumed, with their usage`, async (t) => {
    const artseal = await commandsOver(t, connection);
    await artseal.text('key create --name gallery --tier TRIAL --filing-cap 1');
    const trial = { name: 'gallery', tier: 'TRIAL', monthlyQuota: 1_000, filingCap: 1, status: 'ACTIVE' };
    assert.deepEqual(await artseal.list('platform list'), [trial]);
    const agreed = { ...trial, tier: 'ENTERPRISE', monthlyQuota: 10, filingCap: 2 };
    const change = '--tier ENTERPRISE --monthly-quota 10 --filing-cap 2 --reason agreed';
    assert.deepEqual(await artseal.json(`platform set gallery ${change}`), agreed);
    const suspended = { ...agreed, status: 'SUSPENDED' };
    assert.deepEqual(await artseal.json('platform suspend gallery'), suspended);
    const line = 'SUSPENDED  ENTERPRISE         10  gallery  at most 2 filings a year';
    assert.equal(await artseal.text('platform list'), line);
    assert.deepEqual(await artseal.json('platform resume gallery'), agreed);
    assert.deepEqual(await artseal.json('platform set gallery --monthly-quota unlimited --filing-cap none'), {
      ...{ ...agreed, monthlyQuota: 'unlimited', filingCap: 'none' },
    });
    const { month, ...shown } = await artseal.json('platform show gallery');
    const open = { ...agreed, monthlyQuota: 'unlimited', filingCap: 'none', calls: 0, left: 'unlimited' };
    assert.deepEqual(shown, { ...open, filingsThisYear: 0 });
    assert.deepEqual(await artseal.list('platform usage'), [{ ...open, month }]);
  });

test('the usage of all platforms is a table, lines of JSON, or CSV that a spreadsheet does not execute', async (t) => {
  const artseal = await commandsOver(t, 'a running server');
  const create = (name: string, quota: string) =>
    artseal.json(['key', 'create', '--name', name, '--tier', 'ENTERPRISE', '--monthly-quota', quota]);
  const name = '=HYPERLINK("http://evil.example";"a, b")';
  const { publicUrl } = await artseal.service();
  await send(publicUrl, await create(name, '10'), { target: '/api/v1/provenance/AS-2026-999999' });
  await create('never called', 'unlimited');

  const [{ month }] = await artseal.list('platform usage');
  assert.deepEqual(await artseal.lines('platform usage --csv'), [
    '"name","tier","status","month","calls","monthlyQuota","left"',
    `"'=HYPERLINK(""http://evil.example"";""a, b"")","ENTERPRISE","ACTIVE","${month}",1,10,9`,
    `"never called","ENTERPRISE","ACTIVE","${month}",0,"unlimited","unlimited"`,
  ]);
  const table = await artseal.lines(`platform usage --month ${month}`);
  assert.match(table[0] ?? '', /^month +calls +quota +left +platform$/);
  assert.equal(table[1], `${month}          1         10          9  ${name}`);
  assert.equal(table.length, 3);
  const agreed = { name, tier: 'ENTERPRISE', monthlyQuota: 10, filingCap: 'none', status: 'ACTIVE' };
  assert.deepEqual((await artseal.list('platform usage'))[0], { ...agreed, month, calls: 1, left: 9 });
  const [earlier] = await artseal.list('platform usage --month 2020-01');
  assert.deepEqual(earlier, { ...agreed, month: '2020-01', calls: 0, left: 10 });
});

test('numbers of CSV are bare, texts are quoted, quotes in them are doubled, and none is a formula', () => {
  assert.equal(csvLine(['Gallery One', 812, 'a, "b"; c']), '"Gallery One",812,"a, ""b""; c"');
  assert.equal(csvLine(['', 0]), '"",0');
  // A value that a spreadsheet would execute becomes text, and no other.
  const formulas = ['=1+1', '+1', '-1', '@SUM(A1)', '=cmd|"/c calc"!A1', ' =1+1', '\u3000=1+1'];
  for (const text of [...formulas, '\u00a0@SUM(A1)', '＝1+1', '＋1', '－1', '＠SUM(A1)'])
    assert.equal(csvLine([text]), `"'${text.replaceAll('"', '""')}"`);
  for (const text of ['a=1', '北京-画廊', '1+1', "'=1"]) assert.equal(csvLine([text]), `"${text}"`);
});

testEveryConnection('platform');
