import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createTypedTransport } from '../../src/client/typed.ts';
import { artsealWith } from '../support/artseal.ts';
import { commandsOver, connections, testEveryConnection } from '../support/connections.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { typedClients, typedError } from '../support/typed-clients.ts';

for (const connection of connections)
  test(`a link opens one session, with the scopes that are named: ${connection}`, async (t) => {
    const artseal = await commandsOver(t, connection);
    const { link, scopes, tokenId } = (await artseal.json('console --scopes read --reason shift')) as {
      link: string;
      scopes: string[];
      tokenId: string;
    };
    assert.deepEqual(scopes, ['read']);
    const [, token = ''] =
      /^http:\/\/127\.0\.0\.1:\d+\/console#link=(it_\w+)$/.exec(link) ?? assert.fail(link);
    const { internalUrl } = await artseal.service();
    const clientsOf = (text: string) => typedClients(createTypedTransport(internalUrl, text));
    const { sessions, filings, admin } = clientsOf((await clientsOf(token).sessions.createSession({})).text);
    assert.match((await sessions.getSession({})).caller, /^console:.+/);
    assert.deepEqual((await filings.listFilings({})).filings, []);
    await typedError(admin.listKeys({}), 'PERMISSION_DENIED');
    const made = (await artseal.list('audit-log')).findLast(({ subject }) => subject === tokenId);
    assert.equal(made?.reason, 'shift');
  });

test('without --scopes the link grants what the console uses, and the text says how long it is good', async (t) => {
  const artseal = await commandsOver(t, 'a running server');
  const [link, note] = await artseal.lines('console');
  assert.match(link ?? '', /\/console#link=it_/);
  assert.match(note ?? '', /^It opens the console once, until \d{4}-/);
});

test('the link leads to where a browser of this machine reaches the internal API', async (t) => {
  const start = async (address: string) => {
    const artseal = artsealWith({ ARTSEAL_DATA_DIR: temporaryFolder(t), ARTSEAL_INTERNAL_ADDR: address });
    await artseal.text('init');
    return artseal.lines('console');
  };
  assert.match((await start('0.0.0.0:8081'))[0] ?? '', /^http:\/\/127\.0\.0\.1:8081\/console#/);
  assert.match((await start('[::]:8081'))[0] ?? '', /^http:\/\/\[::1\]:8081\/console#/);
  const [path, note] = await start('unix:/run/artseal/internal.sock');
  assert.match(path ?? '', /^http:\/\/127\.0\.0\.1:8081\/console#link=it_/);
  assert.match(note ?? '', /Run ssh -L 8081:\/run\/artseal\/internal\.sock SERVER on your machine first/);
});

test('an unknown scope is a mistake of the command line', async (t) => {
  const artseal = await commandsOver(t, 'a running server');
  const message = await artseal.errors(2, 'console --scopes read,everything');
  assert.match(message, /console takes --scopes of read, .*, not 'read,everything'/);
});

testEveryConnection('console');
