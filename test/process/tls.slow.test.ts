import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { createClient } from '@connectrpc/connect';
import { FilingService } from '../../gen/artseal/v1/filing_pb.ts';
import { createTypedTransport } from '../../src/client/typed.ts';
import { codeBlocks, documentText } from '../support/documents.ts';
import { startService } from '../support/service.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { runShell } from '../support/watched-command.ts';

test('the documented commands make the certificates that the internal listener requires', async (t) => {
  const folder = temporaryFolder(t);
  const [commands = ''] = codeBlocks(
    documentText('docs/operate/tls-and-proxies.md', 'Client certificates'),
    'sh',
  );
  const made = await runShell(t, `cd '${folder}'\n${commands}`);
  assert.equal(made.code, 0, made.stderr);
  const own = await startService(t, {
    env: {
      ARTSEAL_INTERNAL_TLS_CERT: join(folder, 'server.pem'),
      ARTSEAL_INTERNAL_TLS_KEY: join(folder, 'server.key'),
      ARTSEAL_INTERNAL_TLS_CLIENT_CA: join(folder, 'authority.pem'),
    },
  });
  assert.deepEqual(own.logLines, []);
  const read = (name: string) => readFileSync(join(folder, name));
  const tls = { ca: read('authority.pem'), cert: read('client.pem'), key: read('client.key') };
  const transport = createTypedTransport(own.internalUrl, await own.token(), tls);
  assert.deepEqual((await createClient(FilingService, transport).listFilings({})).filings, []);
});
