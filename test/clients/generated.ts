import { join } from 'node:path';
import { test } from 'node:test';
import { generate } from '../../build/client-generator.ts';
import { openApiPath } from '../../build/openapi.ts';
import { skipUnlessInstalled } from '../support/installed.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { assertSale } from './client-program.ts';

const title =
  'a Ruby client generated from openapi.yaml makes its calls, drops nothing and takes later members';
test(title, { skip: skipUnlessInstalled('mvn', 'java', 'ruby') }, async (t) => {
  const client = join(temporaryFolder(t), 'client');
  // Each object of Ruby has a method `hash`.
  await generate('ruby', openApiPath, client, '--name-mappings', 'hash=evidence_hash');
  const program = join(import.meta.dirname, 'generated', 'calls.rb');
  await assertSale(t, 'ruby', ['-I', join(client, 'lib'), program]);
});
