import assert from 'node:assert/strict';
import { test } from 'node:test';
import { csvLine } from '../../src/cli/platform.ts';
import type { ApiCredentials } from '../../src/client/sign.ts';
import { createCalendar } from '../../src/domain/calendar.ts';
import { artsealWith } from '../support/artseal.ts';
import { createManualClock } from '../support/clock.ts';
import { fileScope } from '../support/file-scope.ts';
import { artwork } from '../support/samples.ts';
import { startService } from '../support/service.ts';
import { type RestAnswer, send } from '../support/signed-request.ts';
import { typedCall } from '../support/typed-json.ts';

const clock = createManualClock();
const service = await startService(fileScope, { clock });
const operator = await service.token(true);
const artseal = artsealWith({ ARTSEAL_DATA_DIR: service.dataDir });

const create = (name: string, agreement: string): Promise<ApiCredentials & { keyId: string }> =>
  artseal.json(['key', 'create', '--name', name, ...agreement.split(' ')]);

/** A query that an accepted caller gets FILING_NOT_FOUND for. */
const ask = (platform: ApiCredentials): Promise<RestAnswer> =>
  send(service.publicUrl, platform, { target: '/api/v1/provenance/AS-2026-999999' });

const codeOf = async (platform: ApiCredentials): Promise<string> => (await ask(platform)).json.code;
const policyOf = ({ headers }: RestAnswer) => String(headers['ratelimit-policy']);
const standingOf = ({ headers }: RestAnswer) => String(headers.ratelimit);

test('a new quota holds for the next call', async () => {
  const platform = await create('raised', '--tier ENTERPRISE --monthly-quota 1');
  assert.equal(await codeOf(platform), 'FILING_NOT_FOUND');
  assert.equal(await codeOf(platform), 'QUOTA_EXCEEDED');

  await artseal.text('platform set raised --monthly-quota 3');
  const raised = await ask(platform);
  assert.equal(raised.json.code, 'FILING_NOT_FOUND');
  assert.match(policyOf(raised), /"monthly";q=3;/);
  assert.match(standingOf(raised), /"monthly";r=1;/);

  await artseal.text('platform set raised --monthly-quota 2');
  const lowered = await ask(platform);
  assert.equal(lowered.json.code, 'QUOTA_EXCEEDED');
  assert.match(String(lowered.json.message), /All 2 calls of /);
  assert.match(standingOf(lowered), /"monthly";r=0;/);

  await artseal.text('platform set raised --monthly-quota unlimited');
  const unlimited = await ask(platform);
  assert.equal(unlimited.json.code, 'FILING_NOT_FOUND');
  assert.doesNotMatch(policyOf(unlimited), /monthly/);
});

test('the rate of a new tier holds for the next call, by command and by RPC', async () => {
  const platform = await create('faster', '--tier TRIAL');
  const answers = await Promise.all(Array.from({ length: 11 }, () => ask(platform)));
  const limited = answers.filter(({ json }) => json.code === 'RATE_LIMITED').map(({ json }) => json.message);
  assert.deepEqual(limited, ['At most 10 calls a second.']);

  await artseal.text('platform set faster --tier STANDARD');
  clock.advance(1_000);
  const faster = await ask(platform);
  assert.match(policyOf(faster), /"qps";q=50;w=1, "monthly";q=10000;/);
  assert.match(standingOf(faster), /"qps";r=49;/);

  const terms = { caller: 'faster', tier: 'TRIAL' };
  await typedCall(service.internalUrl, operator, 'AdminService/UpdatePlatform', terms);
  assert.match(policyOf(await ask(platform)), /"qps";q=10;w=1, "monthly";q=1000;/);
});

test('a cap on filings is agreed, raised and removed', async () => {
  const platform = await create('capped', '--tier TRIAL --filing-cap 1');
  const file = () =>
    send(service.publicUrl, platform, { target: '/api/v1/filing', body: JSON.stringify(artwork) });
  assert.equal((await file()).status, 200);
  assert.equal((await file()).json.code, 'FILING_CAP_REACHED');
  const shown = await artseal.json('platform show capped');
  assert.deepEqual([shown.filingCap, shown.filingsThisYear], [1, 1]);
  await artseal.text('platform set capped --filing-cap 2');
  assert.equal((await file()).status, 200);
  assert.equal((await file()).json.code, 'FILING_CAP_REACHED');
  await artseal.text('platform set capped --filing-cap none --reason agreed');
  assert.equal((await file()).status, 200);
  const [{ action, reason, before, after }] = await artseal.list('audit-log');
  assert.deepEqual([action, reason], ['platform set', 'agreed']);
  assert.deepEqual([before.filingCap, after.filingCap], [2, 'none']);
});

test('the usage of all platforms is a table, lines of JSON, or CSV that a spreadsheet does not execute', async () => {
  const month = createCalendar('UTC').month(Date.now()).name;
  const name = '=HYPERLINK("http://evil.example";"a, b")';
  await ask(await create(name, '--tier ENTERPRISE --monthly-quota 10'));
  await create('never called', '--tier ENTERPRISE --monthly-quota unlimited');

  const csv = await artseal.lines('platform usage --csv');
  assert.equal(csv[0], '"name","tier","status","month","calls","monthlyQuota","left"');
  assert.deepEqual(csv.slice(-2), [
    `"'=HYPERLINK(""http://evil.example"";""a, b"")","ENTERPRISE","ACTIVE","${month}",1,10,9`,
    `"never called","ENTERPRISE","ACTIVE","${month}",0,"unlimited","unlimited"`,
  ]);
  const table = await artseal.lines(`platform usage --month ${month}`);
  assert.match(table[0] ?? '', /^month +calls +quota +left +platform$/);
  assert.equal(table.length, csv.length);
  assert.equal(table.at(-2), `${month}          1         10          9  ${name}`);
  const agreed = { name, tier: 'ENTERPRISE', monthlyQuota: 10, filingCap: 'none', status: 'ACTIVE' };
  const used = { ...agreed, month, calls: 1, left: 9 };
  assert.deepEqual((await artseal.list('platform usage')).at(-2), used);
  assert.deepEqual(await artseal.json(['platform', 'show', name]), { ...used, filingsThisYear: 0 });
  const earlier = await artseal.list('platform usage --month 2020-01');
  assert.deepEqual(earlier.at(-2), { ...agreed, month: '2020-01', calls: 0, left: 10 });
});

test('numbers of CSV are bare, texts are quoted, and quotes in them are doubled', () => {
  assert.equal(csvLine(['Gallery One', 812, 'a, "b"; c']), '"Gallery One",812,"a, ""b""; c"');
  assert.equal(csvLine(['', 0]), '"",0');
});

test('a value of CSV that a spreadsheet would execute becomes text, and no other', () => {
  const formulas = ['=1+1', '+1', '-1', '@SUM(A1)', '=cmd|"/c calc"!A1', ' =1+1', '\u3000=1+1'];
  for (const text of [...formulas, '\u00a0@SUM(A1)', '＝1+1', '＋1', '－1', '＠SUM(A1)'])
    assert.equal(csvLine([text]), `"'${text.replaceAll('"', '""')}"`);
  for (const text of ['a=1', '北京-画廊', '1+1', "'=1"]) assert.equal(csvLine([text]), `"${text}"`);
});
