import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createRestClient } from '../../src/client/rest.ts';
import { commandsOver, connections, testEveryConnection } from '../support/connections.ts';
import { eventually } from '../support/eventually.ts';
import { artwork } from '../support/samples.ts';

for (const connection of connections)
  test(`over ${connection}: requests lists calls, also rejected ones, and no probe`, async (t) => {
    const artseal = await commandsOver(t, connection);
    if (connection === 'a stopped folder') {
      assert.deepEqual(await artseal.lines('requests'), []);
      return;
    }
    const { platform, publicUrl } = await artseal.service();
    const { caller, ...credentials } = await platform();
    const client = createRestClient(publicUrl, credentials);
    const forged = createRestClient(publicUrl, { ...credentials, apiSecret: 'sk_wrong' });
    const body = JSON.stringify(artwork);
    const id = async (sent: Promise<Response>) => (await sent).headers.get('X-Request-Id');
    const filed = await id(client.send('POST', '/api/v1/filing', body));
    const invalid = await id(client.send('POST', '/api/v1/filing', '{}'));
    const rejected = await id(forged.send('POST', '/api/v1/filing', body));
    await fetch(`${publicUrl}/healthz`);
    const unknown = await id(fetch(`${publicUrl}/api/v1/filing?${'x'.repeat(500)}`));

    // A call is listed when its connection has accepted the response.
    const listed = await eventually('the calls', 60_000, async () => {
      const list = await artseal.list('requests --api PUBLIC');
      return list.length >= 4 && list;
    });
    const { at, durationMs, ...newest } = listed[0];
    assert.match(at, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00$/);
    assert.ok(durationMs >= 0);
    const operation = 'artseal.v1.FilingService/CreateFiling';
    assert.deepEqual(newest, {
      ...{ requestId: unknown, caller: '', authenticated: false, api: 'PUBLIC', operation: '' },
      ...{ httpStatus: 401, reason: 'AUTH_HEADER_MISSING' },
    });
    assert.deepEqual(
      listed
        .slice(1)
        .map((one) => [one.requestId, one.httpStatus, one.reason, one.caller, one.authenticated]),
      [
        [rejected, 401, 'SIGNATURE_INVALID', caller, false],
        [invalid, 400, 'VALIDATION_FAILED', caller, true],
        [filed, 200, '', caller, true],
      ],
    );
    const ids = async (flags: string) =>
      (await artseal.list(`requests ${flags}`)).map(({ requestId }) => requestId);
    assert.deepEqual(await ids(`--platform ${caller}`), [rejected, invalid, filed]);
    assert.deepEqual(await ids(`--platform ${caller} --failed`), [rejected, invalid]);
    assert.deepEqual(await ids(`--platform ${caller} --limit 1`), [rejected]);
    assert.deepEqual(await ids(`--request-id ${filed}`), [filed]);
    const [line = ''] = await artseal.lines(`requests --request-id ${rejected}`);
    assert.match(
      line,
      new RegExp(`  401  SIGNATURE_INVALID  .* ms  PUBLIC    ${caller}\\?  -  ${rejected}$`),
    );
    const [full = ''] = await artseal.lines(`requests --request-id ${filed}`);
    assert.match(full, new RegExp(`  200  OK  .* ms  PUBLIC    ${caller}  ${operation}  ${filed}$`));
    assert.equal(
      (await artseal.list('requests')).some(({ reason }) => reason === 'AUTH_HEADER_MISSING'),
      true,
    );

    await artseal.errors(1, 'requests --platform none', /NOT_FOUND/);
    await artseal.errors(
      1,
      'requests --request-id 7',
      /VALIDATION_FAILED: --request-id must be a request id/,
    );
    await artseal.errors(2, 'requests --api rest', /--api must be .*PUBLIC.*ADMIN, not 'rest'/);
  });

testEveryConnection('requests');
