import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { ApiCredentials } from '../../src/client/sign.ts';
import { createCalendar } from '../../src/domain/calendar.ts';
import { runHere } from '../support/artseal.ts';
import { eventually } from '../support/eventually.ts';
import { fileScope } from '../support/file-scope.ts';
import { issueInto } from '../support/issued.ts';
import { artwork } from '../support/samples.ts';
import { type RestAnswer, send } from '../support/signed-request.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { typedCall } from '../support/typed-json.ts';
import { runBounded, serveWatched } from '../support/watched-command.ts';

/** How soon a running server honours a change. */
const honouredMs = 1_000;

const dataDir = temporaryFolder(fileScope);
const { token: operator } = await issueInto(dataDir, 0);
const service = await serveWatched(fileScope, { ARTSEAL_DATA_DIR: dataDir });

/** Runs `artseal` on the folder of the running service; fails unless it exits with 0. */
async function artseal(...words: string[]): Promise<string> {
  const { code, printed, errors } = await runHere(words, { ARTSEAL_DATA_DIR: dataDir });
  assert.equal(code, 0, `artseal ${words.join(' ')}: ${errors.join()}`);
  return printed.join('\n');
}

/** The same in a process of its own. */
async function artsealStarted(t: TestContext, ...words: string[]): Promise<void> {
  const { code, stderr } = await runBounded(t, words, { ARTSEAL_DATA_DIR: dataDir });
  assert.equal(code, 0, stderr);
}

async function create(name: string, ...agreement: string[]): Promise<ApiCredentials & { keyId: string }> {
  return JSON.parse(await artseal('key', 'create', '--name', name, ...agreement, '--json'));
}

/** A query that a caller who is let in gets FILING_NOT_FOUND for. */
const ask = (platform: ApiCredentials): Promise<RestAnswer> =>
  send(service.publicUrl, platform, { target: '/api/v1/provenance/AS-2026-999999' });

/** The first answer of which something is true; fails unless it comes as soon as changes are honoured. */
async function soon(what: string, platform: ApiCredentials, isTrue: (answer: RestAnswer) => boolean) {
  let last: RestAnswer | undefined;
  await eventually(what, honouredMs, async () => {
    last = await ask(platform);
    return isTrue(last);
  });
  return last ?? assert.fail();
}

const policyOf = ({ headers }: RestAnswer) => String(headers['ratelimit-policy']);
const standingOf = ({ headers }: RestAnswer) => String(headers.ratelimit);
const isCode = (code: string) => (answer: RestAnswer) => answer.json.code === code;

test('a platform whose calls of the month are used is let in within a second of a higher quota', async (t) => {
  const platform = await create('raised', '--tier', 'ENTERPRISE', '--monthly-quota', '3');
  await soon('the key is known', platform, isCode('FILING_NOT_FOUND'));
  for (let call = 0; call < 2; call += 1) assert.equal((await ask(platform)).status, 404);
  assert.equal((await ask(platform)).json.code, 'QUOTA_EXCEEDED');

  await artsealStarted(t, 'platform', 'set', 'raised', '--monthly-quota', '5');
  const raised = await soon('a call is let in', platform, isCode('FILING_NOT_FOUND'));
  assert.match(policyOf(raised), /"monthly";q=5;/);
  assert.match(standingOf(raised), /"monthly";r=1;/);

  await artseal('platform', 'set', 'raised', '--monthly-quota', '4');
  const lowered = await soon('no call is let in', platform, isCode('QUOTA_EXCEEDED'));
  assert.match(String(lowered.json.message), /All 4 calls of /);
  assert.match(policyOf(lowered), /"monthly";q=4;/);
  assert.match(standingOf(lowered), /"monthly";r=0;/);

  await artseal('platform', 'set', 'raised', '--monthly-quota', 'unlimited');
  const unlimited = await soon('a call is let in', platform, isCode('FILING_NOT_FOUND'));
  assert.doesNotMatch(policyOf(unlimited), /monthly/);
});

test('the rate of a new tier holds within a second, and the headers tell it', async () => {
  const platform = await create('faster', '--tier', 'TRIAL');
  await soon('the key is known', platform, isCode('FILING_NOT_FOUND'));
  const refusals = async () => {
    const answers = await Promise.all(Array.from({ length: 80 }, () => ask(platform)));
    return new Set(answers.filter(isCode('RATE_LIMITED')).map(({ json }) => json.message));
  };
  assert.deepEqual([...(await refusals())], ['At most 10 calls a second.']);

  await artseal('platform', 'set', 'faster', '--tier', 'STANDARD');
  const faster = await soon('the tier is STANDARD', platform, (answer) =>
    /"qps";q=50;/.test(policyOf(answer)),
  );
  assert.match(policyOf(faster), /"monthly";q=10000;/);
  await eventually('the burst is that of the tier', 60_000, async () => {
    const [, remaining] = /"qps";r=(\d+)/.exec(standingOf(await ask(platform))) ?? [];
    return Number(remaining) >= 40;
  });

  await typedCall(service.internalUrl, operator, 'AdminService/UpdatePlatform', {
    caller: 'faster',
    tier: 'TRIAL',
  });
  // What the process itself changed holds at once.
  assert.match(policyOf(await ask(platform)), /"qps";q=10;w=1, "monthly";q=1000;/);
});

test('a platform that is suspended over RPC is refused from the next call on, with keys issued meanwhile too', async () => {
  const first = await create('suspended', '--tier', 'TRIAL');
  const second = JSON.parse(await artseal('key', 'rotate', first.keyId, '--json'));
  for (const key of [first, second]) await soon('the key is known', key, isCode('FILING_NOT_FOUND'));
  const rpc = async (method: string, request: object) =>
    (await typedCall(service.internalUrl, operator, `AdminService/${method}`, request)).json;
  await rpc('SuspendPlatform', { caller: 'suspended' });
  const { key, apiSecret } = await rpc('RotateKey', { keyId: first.keyId });
  const keys = [first, second, { apiKey: key.apiKey, apiSecret }];
  for (const each of keys) assert.equal((await ask(each)).json.code, 'KEY_SUSPENDED');
  await artseal('platform', 'set', 'suspended', '--tier', 'STANDARD');
  assert.match(await artseal('platform', 'list'), /^SUSPENDED {2}STANDARD +10000 {2}suspended$/m);
  await rpc('ResumePlatform', { caller: 'suspended' });
  for (const each of keys) assert.equal((await ask(each)).json.code, 'FILING_NOT_FOUND');
});

test('a cap on filings is agreed, raised and removed, and holds within a second', async (t) => {
  const platform = await create('capped', '--tier', 'TRIAL', '--filing-cap', '1');
  await soon('the key is known', platform, isCode('FILING_NOT_FOUND'));
  const file = () =>
    send(service.publicUrl, platform, { target: '/api/v1/filing', body: JSON.stringify(artwork) });
  assert.equal((await file()).status, 200);
  assert.equal((await file()).json.code, 'FILING_CAP_REACHED');
  const shown = JSON.parse(await artseal('platform', 'show', 'capped', '--json'));
  assert.deepEqual([shown.filingCap, shown.filingsThisYear], [1, 1]);
  await artsealStarted(t, 'platform', 'set', 'capped', '--filing-cap', '2');
  await eventually('the cap is raised', honouredMs, async () => (await file()).status === 200);
  assert.equal((await file()).json.code, 'FILING_CAP_REACHED');
  await artseal('platform', 'set', 'capped', '--filing-cap', 'none', '--reason', 'agreed');
  await eventually('there is no cap', honouredMs, async () => (await file()).status === 200);
  const [{ action, reason, before, after }] = JSON.parse(
    `[${(await artseal('audit-log', '--json')).split('\n')[0]}]`,
  );
  assert.deepEqual([action, reason], ['platform set', 'agreed']);
  assert.deepEqual(
    [before, after].map((told) => told.filingCap),
    [2, 'none'],
  );
});

test('the usage of all platforms is a table, lines of JSON, or CSV that no spreadsheet carries out', async () => {
  const month = createCalendar('UTC').month(Date.now()).name;
  const name = '=HYPERLINK("http://evil.example";"a, b")';
  const platform = await create(name, '--tier', 'ENTERPRISE', '--monthly-quota', '10');
  await soon('the key is known', platform, isCode('FILING_NOT_FOUND'));
  await ask(platform);
  await create('never called', '--tier', 'ENTERPRISE', '--monthly-quota', 'unlimited');

  const csv = (await artseal('platform', 'usage', '--csv')).split('\n');
  assert.equal(csv[0], '"name","tier","status","month","calls","monthlyQuota","left"');
  assert.deepEqual(csv.slice(-2), [
    `"'=HYPERLINK(""http://evil.example"";""a, b"")","ENTERPRISE","ACTIVE","${month}",2,10,8`,
    `"never called","ENTERPRISE","ACTIVE","${month}",0,"unlimited","unlimited"`,
  ]);
  const table = (await artseal('platform', 'usage', '--month', month)).split('\n');
  assert.match(table[0] ?? '', /^month +calls +quota +left +platform$/);
  assert.equal(table.length, csv.length);
  assert.equal(table.at(-2), `${month}          2         10          8  ${name}`);
  const json = (await artseal('platform', 'usage', '--json')).split('\n').map((line) => JSON.parse(line));
  const agreed = { tier: 'ENTERPRISE', monthlyQuota: 10, filingCap: 'none', status: 'ACTIVE' };
  assert.deepEqual(json.at(-2), { name, ...agreed, month, calls: 2, left: 8 });
  assert.deepEqual(JSON.parse(await artseal('platform', 'show', name, '--json')), {
    ...{ ...json.at(-2), filingsThisYear: 0 },
  });
  const earlier = await artseal('platform', 'usage', '--month', '2020-01', '--json');
  assert.deepEqual(JSON.parse(earlier.split('\n').at(-2) ?? ''), {
    ...{ name, ...agreed, month: '2020-01', calls: 0, left: 10 },
  });
});

test('a change that breaks a rule is refused in the words of the command line', async () => {
  await create('ruled', '--tier', 'TRIAL');
  for (const [words, message] of [
    [['set', 'ruled', '--monthly-quota', '5'], '--monthly-quota is fixed by the tier TRIAL'],
    [['set', 'ruled', '--tier', 'ENTERPRISE'], '--monthly-quota N|unlimited is required for ENTERPRISE'],
    [['set', 'ruled', '--filing-cap', '1000000'], '--filing-cap must be an integer from 1 to 999999'],
    [['set', 'ruled', '--filing-cap', 'unlimited'], '--filing-cap must be an integer from 1 to 999999'],
    [
      ['set', 'ruled', '--tier', 'ENTERPRISE', '--monthly-quota', '1.5'],
      '--monthly-quota must be unlimited or an integer from 1 to 9007199254740991',
    ],
    [['set', 'Ruled', '--tier', 'STANDARD'], 'NAME names no platform'],
    [['show', 'Ruled'], 'NAME names no platform'],
    [['usage', '--month', '2026-13'], '--month must be YYYY-MM'],
  ] as const) {
    const { code, errors } = await runHere(['platform', ...words], { ARTSEAL_DATA_DIR: dataDir });
    assert.equal(code, 1, errors.join());
    assert.ok(errors.join().includes(message), errors.join());
  }
});
