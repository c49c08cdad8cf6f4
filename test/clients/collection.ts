import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { run } from '../../build/client-generator.ts';
import { collectionFile } from '../../src/http/rest/docs/guides.ts';
import { projectFolder } from '../support/artseal-command.ts';
import { openApi } from '../support/openapi.ts';
import { startService } from '../support/service.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

/** The runtime of Postman as a command. It is installed for this test only: it brings 150 packages. */
const newman = 'newman@6.2.2';
const file = join(projectFolder, collectionFile);
const operations = Object.entries(openApi.paths)
  .filter(([path]) => path.startsWith('/api/'))
  .flatMap(([, methods]) => Object.keys(methods));

/** Why the collection as it is gets another status than 200: the order is released, and there is no event 42. */
const conflicts: Readonly<Record<string, number>> = { 'Pay the buyer back': 409, 'Send events again': 409 };

test('Postman runs every request of the collection, signed, against a sandbox', async (t) => {
  const folder = temporaryFolder(t);
  try {
    await run('npm', ['install', '--prefix', folder, '--ignore-scripts', '--no-audit', newman]);
  } catch (error) {
    if (process.env.ARTSEAL_TEST_REQUIRE_ALL) throw error;
    return t.skip('no package registry answers');
  }
  const { publicUrl, platform } = await startService(t);
  const { apiKey, apiSecret } = await platform();

  /** The status of each request, by its name. */
  async function statuses(collection: string, changes: Readonly<Record<string, string>> = {}) {
    const report = join(folder, 'report.json');
    const variables = Object.entries({ baseUrl: publicUrl, apiKey, apiSecret, ...changes });
    const flags = variables.flatMap(([name, value]) => ['--env-var', `${name}=${value}`]);
    const output = ['--suppress-exit-code', '--reporters', 'json', '--reporter-json-export', report];
    await run(join(folder, 'node_modules', '.bin', 'newman'), ['run', collection, ...flags, ...output]);
    const { executions, failures } = JSON.parse(readFileSync(report, 'utf8')).run;
    const found: [string, number][] = executions.map(
      (one: { item: { name: string }; response: { code: number } }) => [one.item.name, one.response.code],
    );
    const messages = failures.map(({ error }: { error: Error }) => error.message);
    return { found, messages };
  }

  const asItIs = await statuses(file);
  assert.equal(asItIs.found.length, operations.length);
  for (const [name, status] of asItIs.found) assert.equal(status, conflicts[name] ?? 200, name);
  assert.deepEqual(asItIs.messages, []);

  // As a developer changes it: a body with line ends, other scripts and a dynamic variable, and query parameters. The address has
  // no scheme, and the secret was copied with a line end.
  const changed = JSON.parse(readFileSync(file, 'utf8'));
  const requests = changed.item.flatMap(({ item }: { item: object[] }) => item);
  const { body } = requests[0].request;
  body.raw = JSON.stringify(
    { ...JSON.parse(body.raw), author: '齐白石 "{{$randomFirstName}}"' },
    undefined,
    2,
  );
  for (const { request } of requests)
    for (const query of request.url.query)
      query.disabled = !['pageSize', 'after', 'state'].includes(query.key);
  const copy = join(folder, 'changed.json');
  writeFileSync(copy, JSON.stringify(changed));
  const careless = { baseUrl: publicUrl.slice('http://'.length), apiSecret: `${apiSecret}\n` };
  assert.deepEqual((await statuses(copy, careless)).found, asItIs.found);

  const forged = await statuses(file, { apiSecret: `${apiSecret}0` });
  assert.deepEqual(forged.found[0], ['File an artwork', 401]);
  // A request whose id no earlier response gave has no valid target.
  assert.ok(forged.found.every(([, status]) => status === 401 || status === 400));
  assert.ok(forged.messages.length > 0);

  const incomplete = await statuses(file, { apiSecret: '' });
  assert.match(incomplete.messages[0] ?? '', /^Set the variables apiKey .* and apiSecret /);
});
