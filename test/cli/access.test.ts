import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fileArtwork } from '../support/calls.ts';
import { commandsOver, connections, testEveryConnection } from '../support/connections.ts';
import { freeAddress } from '../support/free-address.ts';

const env = {
  // Nothing listens there.
  ARTSEAL_SMTP_URL: `smtp://${await freeAddress()}`,
  ARTSEAL_MAIL_FROM: 'registry@registry.example',
  ARTSEAL_PUBLIC_URL: 'https://registry.example',
};
const person = (email: string) =>
  `access add --email ${email} --name Qi --intended-use paintings --tier STANDARD`;

for (const connection of connections)
  test(`over ${connection}: a person is pre-registered, gets an appointment and a key, and is removed`, async (t) => {
    const artseal = await commandsOver(t, connection, { env });
    const added = await artseal.json(person('One@example.com'));
    const { registrationId } = added;
    assert.match(registrationId, /^rg_[0-9a-f]{16}$/);
    assert.deepEqual(added, {
      ...{ registrationId, position: 1, email: 'One@example.com', name: 'Qi', intendedUse: 'paintings' },
      ...{ tier: 'STANDARD', byForm: false, registeredAt: added.registeredAt, appointmentAt: null },
      ...{ platform: null, linkExpiresAt: null, claimedAt: null },
      ...{ notice: 'DUE', noticeAt: null, noticeDetail: null, isNew: true },
    });
    const again = await artseal.json(person('one@EXAMPLE.com'));
    assert.deepEqual(again, { ...added, isNew: false });
    const at = '2099-01-01T09:00:00+00:00';
    const appointed = await artseal.json(`access appoint ${registrationId} --at ${at}`);
    assert.equal(appointed.appointmentAt, at);
    assert.match(
      await artseal.text('access list'),
      new RegExp(`One@example.com {2}Qi {2}appointment ${at.replace('+', '\\+')}$`),
    );
    assert.equal((await artseal.json(`access appoint ${registrationId} --at none`)).appointmentAt, null);

    const agreement = '--name gallery --tier ENTERPRISE --monthly-quota 50';
    const [link = '', use = ''] = await artseal.lines(
      `access approve ${registrationId} ${agreement} --expires-in 1h`,
    );
    assert.match(link, /^https:\/\/registry\.example\/access\/[\w-]{43}$/);
    assert.match(use, /^The link shows the API key of gallery once, until 20/);
    assert.match(await artseal.text('access list'), / {2}platform gallery \(link not used\)$/);
    const renewed = await artseal.json(`access renew ${registrationId}`);
    assert.deepEqual([renewed.registrationId, renewed.platform], [registrationId, 'gallery']);
    assert.notEqual(renewed.link, link);

    const unsent = await artseal.errors(1, 'access notify');
    assert.match(
      unsent,
      /^artseal: UNAVAILABLE: Notices are not sent: the mail server 127\.0\.0\.1:\d+ cannot be used: .*ECONNREFUSED/,
    );
    assert.equal((await artseal.list('access list --notice DUE')).length, 1);
    const bounced = await artseal.json(['access', 'bounced', registrationId, '--detail', 'user unknown']);
    assert.deepEqual([bounced.notice, bounced.noticeDetail], ['BOUNCED', 'user unknown']);
    assert.match(await artseal.text('access list --notice BOUNCED'), / {2}user unknown$/);
    assert.deepEqual(await artseal.lines('access notify'), []);

    const other = (await artseal.json(person('two@example.com'))).registrationId;
    assert.deepEqual(await artseal.lines(`access remove ${other} --reason asked`), [`${other} is removed`]);
    const [removal] = await artseal.list('audit-log');
    assert.deepEqual([removal.action, removal.subject, removal.reason], ['access remove', other, 'asked']);
    assert.equal((await artseal.list('access list')).length, 1);

    const service = await artseal.service();
    const press = (one: string) => fetch(`${service.publicUrl}${new URL(one).pathname}`, { method: 'POST' });
    assert.equal((await press(link)).status, 404);
    const text = await (await press(renewed.link)).text();
    const [apiKey = '', apiSecret = ''] = text.match(/\b[as]k_sandbox_\w+/g) ?? [];
    assert.equal((await fileArtwork(service, { apiKey, apiSecret })).status, 200);
    // Over each connection, the server answers now.
    const errors = await artseal.errors(1, `access renew ${registrationId}`);
    assert.match(errors, /REGISTRATION_ID names a registration whose link was used: revoke key_\w+ first/);
  });

test('wrong words are named as they stand on the command line', async (t) => {
  const artseal = await commandsOver(t, 'a stopped folder');
  for (const [line, error] of [
    [person('one@example'), '--email must be an e-mail address such as name@example.com'],
    ['access approve rg_none --name a --tier ENTERPRISE', 'N|unlimited is required for ENTERPRISE'],
    ['access renew rg_none --expires-in 31d', '--expires-in must be an integer from 60 to 2592000'],
    ['access remove rg_none', 'NOT_FOUND: REGISTRATION_ID names no registration. See artseal access list'],
    [
      'access notify',
      'UNAVAILABLE: No mail server is set: the server needs ARTSEAL_SMTP_URL and ARTSEAL_MAIL_FROM.',
    ],
  ] as const)
    assert.ok((await artseal.errors(1, line)).includes(error), error);
});

testEveryConnection('access');
