import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { createRestClient } from '../../src/client/rest.ts';
import { projectFolder } from '../support/artseal-command.ts';
import { artwork, escrowTerms } from '../support/samples.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { commandEnvironment, startProgram, toItsEnd, whenReady } from '../support/watched-command.ts';

// Runs the sources of the version before, which .ci/version-before puts into a folder, and of this version in turn on one
// data folder.

const folders = { before: process.env.ARTSEAL_VERSION_BEFORE ?? '', present: projectFolder } as const;

type Version = keyof typeof folders;

/** Starts `artseal` of a version on a data folder. */
function start(t: TestContext, version: Version, dataDir: string, words: readonly string[]) {
  const cwd = folders[version];
  const env = commandEnvironment({ ARTSEAL_DATA_DIR: dataDir });
  return startProgram(t, join(cwd, 'node_modules', '.bin', 'node'), ['src/main.ts', ...words], { env, cwd });
}

/** What the versions recorded in a data folder so far. */
interface Recorded {
  /** The provenance of each sold artwork, by its filing number. */
  readonly sold: Map<string, unknown>;
  /** The order that waits for its release, and its filing number. */
  open?: { readonly escrowId: string; readonly filingNo: string };
}

/**
 * Lets a version serve a data folder: it reads what was recorded, releases the order that the last one opened, files an artwork,
 * and opens an order for it.
 */
async function takeTurn(
  t: TestContext,
  version: Version,
  dataDir: string,
  recorded: Recorded,
): Promise<void> {
  const service = await whenReady(start(t, version, dataDir, ['serve']));
  const credentials = JSON.parse(readFileSync(join(dataDir, 'sandbox-credentials.json'), 'utf8'));
  const client = createRestClient(service.publicUrl, credentials);
  const call = async (method: string, target: string, body?: object) => {
    const response = await client.send(method, `/api/v1${target}`, body && JSON.stringify(body));
    const text = await response.text();
    assert.equal(response.status, 200, `${version}: ${method} ${target}: ${text}`);
    return JSON.parse(text);
  };

  for (const [filingNo, provenance] of recorded.sold)
    assert.deepEqual(await call('GET', `/provenance/${filingNo}`), provenance, `${version}: ${filingNo}`);
  if (recorded.open !== undefined) {
    const { escrowId, filingNo } = recorded.open;
    const released = await call('POST', `/escrow/${escrowId}/release`);
    assert.equal(released.state, 'RELEASED', version);
    recorded.sold.set(filingNo, await call('GET', `/provenance/${filingNo}`));
  }
  const { filingNo } = await call('POST', '/filing', artwork);
  const { escrowId } = await call('POST', '/escrow', escrowTerms(filingNo));
  recorded.open = { escrowId, filingNo };

  assert.equal(await service.stop(), 0, service.stderr());
  const check = await toItsEnd(start(t, version, dataDir, ['check']));
  assert.equal(check.code, 0, `${version}: ${check.stdout}${check.stderr}`);
}

const turns: Record<string, readonly Version[]> = {
  'created by this version': ['present', 'before', 'present'],
  'created by the version before': ['before', 'present', 'before', 'present'],
};
for (const [name, versions] of Object.entries(turns)) {
  test(`this version and the one before take turns on a data folder ${name}`, async (t) => {
    const dataDir = join(temporaryFolder(t), 'data');
    const recorded: Recorded = { sold: new Map() };
    for (const version of versions) await takeTurn(t, version, dataDir, recorded);
    const events = [...recorded.sold.values()].map(
      (provenance) => JSON.stringify(provenance).match(/TRANSFER/g)?.length,
    );
    assert.deepEqual(
      events,
      versions.slice(1).map(() => 1),
    );
  });
}
