import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ApiCredentials } from '../../src/client/sign.ts';
import { commandsOver, connections, testEveryConnection } from '../support/connections.ts';

type Issued = ApiCredentials & { readonly keyId: string };

const agreements = [
  ['trial', 'TRIAL', 1_000],
  ['standard', 'STANDARD', 10_000],
  ['agreed', 'ENTERPRISE --monthly-quota 1', 1],
  ['unlimited', 'ENTERPRISE --monthly-quota unlimited', 'unlimited'],
] as const;

for (const connection of connections)
  test(`over ${connection}: keys are created, suspended, resumed, rotated, revoked and listed`, async (t) => {
    const artseal = await commandsOver(t, connection);
    const keys: Issued[] = [];
    const expected: object[] = [];
    for (const [name, agreed, monthlyQuota] of agreements) {
      const key = await artseal.json(`key create --name ${name} --tier ${agreed}`);
      assert.deepEqual(Object.keys(key), ['keyId', 'apiKey', 'apiSecret', 'caller', 'tier']);
      assert.deepEqual([key.caller, key.tier], [name, agreed.split(' ')[0]]);
      const { apiSecret: _, ...listed } = key;
      const status = { status: 'ACTIVE', expiresAt: null, platformStatus: 'ACTIVE' };
      expected.push({ ...listed, monthlyQuota, ...status });
      keys.push(key);
    }
    assert.deepEqual(await artseal.list('key list'), expected);

    const [suspended, rotated, ended, revoked] = keys as [Issued, Issued, Issued, Issued];
    await artseal.text(`key suspend ${suspended.keyId}`);
    await artseal.text(`key suspend ${rotated.keyId}`);
    assert.equal((await artseal.json(`key resume ${rotated.apiKey}`)).status, 'ACTIVE');
    await artseal.json(`key rotate ${rotated.keyId}`);
    await artseal.json(`key rotate ${ended.keyId} --overlap 0`);
    await artseal.text(`key revoke ${revoked.keyId}`);

    const list = await artseal.list('key list');
    assert.deepEqual(
      list.map(({ status }) => status),
      ['SUSPENDED', 'ACTIVE', 'REVOKED', 'REVOKED', 'ACTIVE', 'ACTIVE'],
    );
    const endsInS = Date.parse(list[1].expiresAt) / 1_000 - Math.floor(Date.now() / 1_000);
    assert.ok(endsInS > 86_000 && endsInS <= 86_400, `it ends in ${endsInS} s`);
  });

test('a key is shown to people with its secret, which no list shows again', async (t) => {
  const artseal = await commandsOver(t, 'a stopped folder');
  const shown = await artseal.text('key create --name gallery --tier TRIAL');
  const value = (name: string) => new RegExp(`^${name} +(\\S+)$`, 'm').exec(shown)?.[1] ?? `no ${name}`;
  const list = await artseal.text('key list');
  assert.match(list, new RegExp(`^${value('keyId')}\\b.*\\bACTIVE\\b.*\\bTRIAL\\b.*\\bgallery$`, 'm'));
  assert.equal(list.includes(value('apiSecret').slice(11)), false);
  await artseal.text('platform suspend gallery');
  assert.match(await artseal.text('key list'), /ACTIVE .*gallery {2}\(platform suspended\)$/);
});

testEveryConnection('key');
