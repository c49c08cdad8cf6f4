import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { ApiCredentials } from '../../src/client/sign.ts';
import { artsealWith } from '../support/artseal.ts';
import { startService, type TestService } from '../support/service.ts';
import { send } from '../support/signed-request.ts';
import { typedCall } from '../support/typed-json.ts';

/** A provenance query that an accepted caller gets FILING_NOT_FOUND for. */
const probe = { target: '/api/v1/provenance/AS-2026-999999' };

const codeOf = async ({ publicUrl }: TestService, key: ApiCredentials): Promise<string> =>
  (await send(publicUrl, key, probe)).json.code;

/** A running service, and the commands beside it. */
async function serviceWithCommands(t: TestContext) {
  const service = await startService(t);
  return { service, artseal: artsealWith({ ARTSEAL_DATA_DIR: service.dataDir }) };
}

test('keys of every tier are issued, listed, and accepted at once', async (t) => {
  const { service, artseal } = await serviceWithCommands(t);
  const expected: object[] = [];
  for (const [name, agreed, monthlyQuota] of [
    ['trial', 'TRIAL', 1_000],
    ['standard', 'STANDARD', 10_000],
    ['agreed', 'ENTERPRISE --monthly-quota 2', 2],
    ['unlimited', 'ENTERPRISE --monthly-quota unlimited', 'unlimited'],
  ] as const) {
    const key = await artseal.json(`key create --name ${name} --tier ${agreed}`);
    assert.deepEqual(Object.keys(key), ['keyId', 'apiKey', 'apiSecret', 'caller', 'tier']);
    assert.match(key.apiKey, /^ak_sandbox_/);
    assert.deepEqual([key.caller, key.tier], [name, agreed.split(' ')[0]]);
    assert.equal(await codeOf(service, key), 'FILING_NOT_FOUND');
    const { apiSecret: _, ...shown } = key;
    const status = { status: 'ACTIVE', expiresAt: null, platformStatus: 'ACTIVE' };
    expected.push({ ...shown, monthlyQuota, ...status });
    if (name !== 'agreed') continue;
    assert.equal(await codeOf(service, key), 'FILING_NOT_FOUND');
    assert.equal(await codeOf(service, key), 'QUOTA_EXCEEDED');
  }
  assert.deepEqual(await artseal.list('key list'), expected);
});

test('a key is shown to people with its secret, which no list shows again', async (t) => {
  const { artseal } = await serviceWithCommands(t);
  const shown = await artseal.text('key create --name gallery --tier TRIAL');
  const value = (name: string) => new RegExp(`^${name} +(\\S+)$`, 'm').exec(shown)?.[1] ?? `no ${name}`;
  const list = await artseal.text('key list');
  assert.match(list, new RegExp(`^${value('keyId')}\\b.*\\bACTIVE\\b.*\\bTRIAL\\b.*\\bgallery$`, 'm'));
  assert.equal(list.includes(value('apiSecret').slice(11)), false);
});

test('each change of a key or platform holds when its command returns, and after a restart', async (t) => {
  const { service, artseal } = await serviceWithCommands(t);
  const create = 'key create --name gallery --tier ENTERPRISE --monthly-quota unlimited';
  const keys = [await artseal.json(create)];
  const codes = async (of = service) => {
    const found: string[] = [];
    for (const key of keys) found.push(await codeOf(of, key));
    return found;
  };
  const [first] = keys;
  await artseal.text(`key suspend ${first.keyId}`);
  assert.deepEqual(await codes(), ['KEY_SUSPENDED']);
  await artseal.text(`key resume ${first.apiKey}`);
  assert.deepEqual(await codes(), ['FILING_NOT_FOUND']);

  keys.push(await artseal.json(`key rotate ${first.keyId}`));
  assert.deepEqual(await codes(), ['FILING_NOT_FOUND', 'FILING_NOT_FOUND']);
  const [overlapped] = await artseal.list('key list');
  const endsInS = Date.parse(overlapped.expiresAt) / 1_000 - Math.floor(Date.now() / 1_000);
  assert.ok(endsInS > 86_000 && endsInS <= 86_400, `it ends in ${endsInS} s`);
  keys.push(await artseal.json(`key rotate ${keys[1].keyId} --overlap 0`));
  assert.deepEqual(await codes(), ['FILING_NOT_FOUND', 'SIGNATURE_INVALID', 'FILING_NOT_FOUND']);

  await artseal.text('platform suspend gallery');
  assert.deepEqual(await codes(), ['KEY_SUSPENDED', 'SIGNATURE_INVALID', 'KEY_SUSPENDED']);
  assert.match(await artseal.text('key list'), /ACTIVE .*gallery {2}\(platform suspended\)/);
  assert.equal((await artseal.json('platform list')).status, 'SUSPENDED');
  await artseal.text('platform resume gallery');
  await artseal.text(`key revoke ${first.keyId}`);
  assert.match(await artseal.errors(1, `key resume ${first.keyId}`), /revoked/);
  const ended = ['SIGNATURE_INVALID', 'SIGNATURE_INVALID', 'FILING_NOT_FOUND'];
  assert.deepEqual(await codes(), ended);

  const statuses = (await artseal.list('key list')).map(({ status }) => status);
  assert.deepEqual(statuses, ['REVOKED', 'REVOKED', 'ACTIVE']);
  await service.close();
  assert.deepEqual(await codes(await startService(t, { dataDir: service.dataDir })), ended);
});

test('a token works when its command returns, until it is revoked', async (t) => {
  const { service, artseal } = await serviceWithCommands(t);
  const { token, tokenId } = await artseal.json('token create --name shop --scopes read');
  const status = async () =>
    (await typedCall(service.internalUrl, token, 'FilingService/ListFilings', {})).status;
  assert.equal(await status(), 200);
  await artseal.text(`token revoke ${tokenId}`);
  assert.equal(await status(), 401);
  const [{ revokedAt }] = await artseal.list('token list');
  assert.ok(Math.abs(Date.parse(revokedAt) - Date.now()) < 60_000);
});
