import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { createRestClient } from '../../src/client/rest.ts';
import { projectFolder } from '../support/artseal-command.ts';
import { eventually } from '../support/eventually.ts';
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

/** Calls the platform API of a version as the sandbox platform. Fails if the response is an error. */
type Call = (method: string, target: string, body?: object) => Promise<Record<string, string>>;

/** Lets a version serve a data folder. Afterwards `artseal check` of this version finds no fault. */
async function serve(
  t: TestContext,
  version: Version,
  dataDir: string,
  use: (call: Call, publicUrl: string) => Promise<void>,
): Promise<void> {
  const service = await whenReady(start(t, version, dataDir, ['serve']));
  const credentials = JSON.parse(readFileSync(join(dataDir, 'sandbox-credentials.json'), 'utf8'));
  const client = createRestClient(service.publicUrl, credentials);
  await use(async (method, target, body) => {
    const response = await client.send(method, `/api/v1${target}`, body && JSON.stringify(body));
    const text = await response.text();
    assert.equal(response.status, 200, `${version}: ${method} ${target}: ${text}`);
    return JSON.parse(text);
  }, service.publicUrl);
  assert.equal(await service.stop(), 0, service.stderr());
  const check = await toItsEnd(start(t, version, dataDir, ['check']));
  assert.equal(check.code, 0, `${version}: ${check.stdout}${check.stderr}`);
}

/** Reads what was recorded, releases the order that the last turn opened, files an artwork, and opens an order for it. */
async function takeTurn(call: Call, recorded: Recorded): Promise<void> {
  for (const [filingNo, provenance] of recorded.sold)
    assert.deepEqual(await call('GET', `/provenance/${filingNo}`), provenance, filingNo);
  if (recorded.open !== undefined) {
    const { escrowId, filingNo } = recorded.open;
    const released = await call('POST', `/escrow/${escrowId}/release`);
    assert.equal(released.state, 'RELEASED');
    recorded.sold.set(filingNo, await call('GET', `/provenance/${filingNo}`));
  }
  const { filingNo = '' } = await call('POST', '/filing', artwork);
  const { escrowId = '' } = await call('POST', '/escrow', escrowTerms(filingNo));
  recorded.open = { escrowId, filingNo };
}

/** The first version whose records the released one cannot read: its upgrade is final. */
const finalUpgrade = { before: '1.0.0-rc.1', present: '1.0.0-rc.2' };
const { version: before } = JSON.parse(readFileSync(join(folders.before, 'package.json'), 'utf8'));
const isFinal = before === finalUpgrade.before;

const turns: Record<string, readonly Version[]> = {
  'created by this version': ['present', 'before', 'present'],
  'created by the version before': ['before', 'present', 'before', 'present'],
};
for (const [name, versions] of Object.entries(turns)) {
  const skip = isFinal && `${before} cannot read records of version 2`;
  test(`this version and the one before take turns on a data folder ${name}`, { skip }, async (t) => {
    const dataDir = join(temporaryFolder(t), 'data');
    const recorded: Recorded = { sold: new Map() };
    for (const version of versions) await serve(t, version, dataDir, (call) => takeTurn(call, recorded));
    const events = [...recorded.sold.values()].map(
      (provenance) => JSON.stringify(provenance).match(/TRANSFER/g)?.length,
    );
    assert.deepEqual(
      events,
      versions.slice(1).map(() => 1),
    );
  });
}

test('this version reads, proves and sells what the one before filed, which then cannot open the data folder', {
  skip: !isFinal && `${before} can open the data folder`,
}, async (t) => {
  const dataDir = join(temporaryFolder(t), 'data');
  const recorded: Recorded = { sold: new Map() };
  const file = join(dataDir, '..', 'evidence.json');
  const bundles = new Map<string, Record<string, string>>();
  let vkey = '';
  const evidenceOf = (call: Call, filingNo: string) =>
    eventually('evidence', 60_000, () => call('GET', `/filing/${filingNo}/evidence`).catch(() => undefined));
  const assertVerified = async (bundle: object) => {
    writeFileSync(file, JSON.stringify(bundle));
    const { code, stdout } = await toItsEnd(start(t, 'present', dataDir, ['verify', file, '--key', vkey]));
    assert.equal(code, 0, stdout);
    assert.match(stdout, /^VERIFIED: /);
  };

  await serve(t, 'before', dataDir, async (call, publicUrl) => {
    await takeTurn(call, recorded);
    await takeTurn(call, recorded);
    for (const filingNo of [...recorded.sold.keys(), recorded.open?.filingNo ?? ''])
      bundles.set(filingNo, await evidenceOf(call, filingNo));
    vkey = (await (await fetch(`${publicUrl}/log/vkey`)).text()).trimEnd();
  });
  await serve(t, 'present', dataDir, async (call) => {
    await takeTurn(call, recorded);
    for (const [filingNo, taken] of bundles) {
      const present = await evidenceOf(call, filingNo);
      const { proof: _, ...kept } = present;
      assert.deepEqual({ ...kept, proof: taken.proof }, taken, filingNo);
      const { hash } = await call('GET', `/filing/${filingNo}`);
      assert.equal(hash, taken.hash);
      for (const bundle of [taken, present]) await assertVerified(bundle);
    }
    const { version } = await evidenceOf(call, recorded.open?.filingNo ?? '');
    assert.equal(version, 2);
  });
  const refused = await toItsEnd(start(t, 'before', dataDir, ['serve']));
  assert.equal(refused.code, 1, refused.stdout);
  assert.match(refused.stderr, new RegExp(`needs artseal ${finalUpgrade.present} or later`));
  await serve(t, 'present', dataDir, (call) => takeTurn(call, recorded));
});
