import assert from 'node:assert/strict';
import { cpSync, existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { ApiError } from '../../../src/domain/reason.ts';
import { markFileName } from '../../../src/evidence/log/verification.ts';
import { type Command, perform } from '../../../src/store/store.ts';
import { time, toFile, toOpen } from '../../store/promises/fixtures.ts';
import { runHere } from '../../support/artseal.ts';
import { tester } from '../../support/audit-log.ts';
import { fileArtwork, getEscrow, openEscrow, refundEscrow, releaseEscrow } from '../../support/calls.ts';
import { createManualClock } from '../../support/clock.ts';
import { copyFolder } from '../../support/copy-folder.ts';
import { fileScope } from '../../support/file-scope.ts';
import { forgeableAtMs, forgeries, makeForgeableRegistry } from '../../support/forgeries.ts';
import { appendForged, type FilingRow, forgeIn, leafOfFiling, rewriteLeaf } from '../../support/forging.ts';
import { publishAll } from '../../support/publication.ts';
import { assertRejected } from '../../support/rejected.ts';
import { startService, type TestService } from '../../support/service.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

/** What notices a forgery. */
interface Effects {
  /** The error of the start, or of /readyz; undefined if the service is ready. */
  readonly start?: RegExp;
  /** Whether reading the provenance of the forged filing fails with RECORD_DAMAGED. */
  readonly read?: boolean;
  /** Whether the evidence of one of its records does. */
  readonly evidence?: boolean;
  /** Whether a new order for it does. */
  readonly order?: boolean;
  /** Whether a list of all filings does. */
  readonly list?: boolean;
  /** Whether the list of the platform does. */
  readonly ownList?: boolean;
  /** Whether a new filing does. */
  readonly file?: boolean;
  /** The fault that `artseal check` finds; undefined if it names what was forged. */
  readonly check?: RegExp;
  /** The error of `artseal log audit` on what is then published; undefined if it finds no contradiction. */
  readonly audit?: RegExp;
}

/** By the names of the forgeries. */
const effects: Readonly<Record<string, Effects>> = {
  'row, leaf text and leaf hash': { start: /does not agree with what was published/ },
  'whole tree and kept checkpoint': {
    start: /does not agree with what was published/,
    check: /does not agree with what was published/,
  },
  'newest filing deleted': {
    ...{ read: true, evidence: true, order: true },
    ...{ list: true, ownList: true, file: true },
  },
  'middle filing deleted': { read: true, evidence: true, order: true, list: true, ownList: true },
  'transfer deleted': { read: true, evidence: true, order: true },
  'transfer without its salt': { read: true, evidence: true },
  'faked erasure': { read: true, evidence: true, order: true, list: true, ownList: true },
  'faked erasure with its event': {
    ...{ read: true, evidence: true, order: true, list: true, ownList: true },
    audit: /leaf 19 of the log erases leaf 18 of 2026-11-21T14:00:00Z, after 2020-11-16/,
  },
  caller_id: { read: true, evidence: true, order: true, list: true, ownList: true },
  filed_at_s: { read: true, evidence: true, order: true, list: true, ownList: true },
  recorded_at_s: { read: true, evidence: true },
  number_gap: {},
  log_key: { start: /master key does not decrypt the secret of/ },
};

const noDamage = { read: false, evidence: false, order: false, list: false, ownList: false, file: false };

const registry = await makeForgeableRegistry(fileScope);
const afternoon = time('2026-11-21T15:00:00+00:00');
/** The number of the next filing in the registry. */
const nextNumber = 'AS-2026-500006';

function copyOfRegistry(t: TestContext): string {
  const dataDir = join(temporaryFolder(t), 'data');
  copyFolder(registry, dataDir);
  return dataDir;
}

/** Starts a service on a data folder of the time of the registry. */
const startOn = (t: TestContext, dataDir: string, clock = createManualClock(forgeableAtMs)) =>
  startService(t, { dataDir, clock });

async function faultsOf(service: TestService): Promise<string> {
  const answer = await fetch(`${service.publicUrl}/readyz`);
  const { evidence } = JSON.parse(await answer.text()).parts ?? {};
  return answer.status === 200 ? '' : `${evidence} ${service.logLines.join('\n')}`;
}

async function assertStarts(start: RegExp | undefined, starting: Promise<TestService>) {
  const service = await starting.catch((error: Error) => error);
  if (service instanceof Error) {
    assert.match(service.message, start ?? /^$/);
    return undefined;
  }
  assert.match(await faultsOf(service), start ?? /^$/);
  return service;
}

function auditOf({ publication, publicUrl }: TestService) {
  const keys = publication.verifierKeys().flatMap((vkey) => ['--key', vkey]);
  return runHere(['log', 'audit', `${publicUrl}/log/`, ...keys], {});
}

/** The fault of the evidence log that `artseal check` finds. */
async function faultByCheck(dataDir: string): Promise<string> {
  const addresses = { ARTSEAL_PUBLIC_ADDR: '127.0.0.1:0', ARTSEAL_INTERNAL_ADDR: '127.0.0.1:0' };
  const { code, printed } = await runHere(['check', '--json'], { ARTSEAL_DATA_DIR: dataDir, ...addresses });
  assert.equal(code, 1);
  const found = printed.map((line) => JSON.parse(line));
  return found.find(({ part, level }) => part === 'evidence log' && level === 'fault')?.text ?? '';
}

/** Whether a command fails with RECORD_DAMAGED, which the store counts. */
async function isDamaged({ store }: TestService, command: Command): Promise<boolean> {
  const count = async () => (await store.metrics()).incidents.damagedRecords;
  const before = await count();
  try {
    await perform(store, command);
    return false;
  } catch (error) {
    assert.ok(error instanceof ApiError, String(error));
    assert.equal(error.reason, 'RECORD_DAMAGED');
    assert.ok((await count()) > before);
    return true;
  }
}

const page = { from: undefined, size: 100 };
const listOf = (owner: number | undefined) =>
  ({ kind: 'ListFilings', filter: { owner, year: undefined }, page }) as const;
const by = (callerId: number) => ({ callerId, caller: 'a platform' });
const toFileNow = toFile(by(1), afternoon);

test('without a forgery the registry is ready and readable, with its mark and without', async (t) => {
  for (const hasMark of [true, false]) {
    const dataDir = copyOfRegistry(t);
    assert.ok(existsSync(join(dataDir, markFileName)));
    if (!hasMark) rmSync(join(dataDir, markFileName));
    const service = await startOn(t, dataDir);
    assert.equal(await faultsOf(service), '');
    for (const { filingNo } of (await perform(service.store, listOf(undefined))).items)
      assert.equal(await isDamaged(service, { kind: 'GetProvenance', filingNo }), false);
    assert.equal((await perform(service.store, toFileNow)).filingNo, nextNumber);
  }
});

for (const { name, what, forge } of forgeries) {
  const { start, check, audit, ...damage } = effects[name] ?? assert.fail(`${name} has no row in the table`);

  test(`${name}: what the table says notices the forgery, and nothing else (${what})`, async (t) => {
    const dataDir = copyOfRegistry(t);
    const forged = forgeIn(join(dataDir, 'artseal.db'), forge);
    assert.match(await faultByCheck(dataDir), check ?? new RegExp(RegExp.escape(forged)));
    const clock = createManualClock(forgeableAtMs);
    const service = await assertStarts(start, startOn(t, dataDir, clock));
    if (service === undefined) return;
    const [filingNo = 'AS-2026-000001'] = /AS-\d{4}-\d{6}/.exec(forged) ?? [];
    const areDamaged = (commands: readonly Command[]) =>
      Promise.all(commands.map((command) => isDamaged(service, command)));
    const evidence = [1, 2, 3].map(
      (sequence) => ({ kind: 'FindRecord', sequence, owner: undefined, filingNo }) as const,
    );
    assert.deepEqual(
      {
        read: await isDamaged(service, { kind: 'GetProvenance', filingNo }),
        evidence: (await areDamaged(evidence)).includes(true),
        order:
          name !== 'number_gap' && (await isDamaged(service, toOpen(by(1), filingNo, { owner: undefined }))),
        list: await isDamaged(service, listOf(undefined)),
        ownList: (await areDamaged([1, 2].map(listOf))).includes(true),
        file: await isDamaged(service, toFileNow),
      },
      { ...noDamage, ...damage },
    );
    // A gap that is shorter does not assign a number again.
    if (name === 'number_gap') assert.ok((await perform(service.store, toFileNow)).filingNo > nextNumber);
    if (start !== undefined) return;
    await publishAll(service, clock);
    const { code, errors } = await auditOf(service);
    assert.equal(code, audit === undefined ? 0 : 7);
    assert.match(errors.join(), audit ?? /^$/);
  });
}

test('a forgery in the database of a running service is noticed by what depends on it', async (t) => {
  const dataDir = copyOfRegistry(t);
  const service = await startOn(t, dataDir);
  const file = join(dataDir, 'artseal.db');
  const forgeOne = (query: string, change: (filingNo: string) => string): string =>
    forgeIn(file, (client) => {
      const filingNo = String(client.prepare(query).pluck().get());
      client.exec(change(filingNo));
      return filingNo;
    });

  forgeOne('SELECT max(id) FROM filing', (id) => `UPDATE filing SET caller_id = 99 WHERE id = ${id}`);
  assert.equal(await isDamaged(service, listOf(undefined)), true, 'the caller of a filing is missing');

  const sold = forgeOne(
    'SELECT filing_no FROM provenance_record GROUP BY filing_no HAVING count(*) = 2',
    (filingNo) => `DELETE FROM provenance_record WHERE filing_no = '${filingNo}' AND position = 2`,
  );
  const order = toOpen(by(1), sold, { owner: undefined });
  assert.equal(await isDamaged(service, order), true, 'a TRANSFER before the last one is missing');

  const older = forgeOne(
    `SELECT filing_no FROM filing WHERE filed_at_s > unixepoch('2026-01-01') AND id < (SELECT max(id) FROM filing)
      AND filing_no NOT IN (SELECT filing_no FROM provenance_record) LIMIT 1`,
    (filingNo) =>
      `UPDATE filing SET filed_at_s = filed_at_s - 6 * 366 * 86400 WHERE filing_no = '${filingNo}'`,
  );
  const erasure = { by: { ...tester, atS: forgeableAtMs / 1_000 }, filingNos: [older] };
  assert.equal(await isDamaged(service, { kind: 'EraseFilings', ...erasure }), true, 'a filing is backdated');
  forgeIn(file, (client) => {
    const hash = client.prepare(`SELECT hash FROM filing WHERE filing_no = '${older}'`).pluck().get();
    assert.notEqual(hash, '', 'it is not erased');
  });
});

test('the next start finds leaves that were appended to the file of a running server', async (t) => {
  const dataDir = copyOfRegistry(t);
  const service = await startOn(t, dataDir);
  forgeIn(join(dataDir, 'artseal.db'), (client) => {
    const other = (sequence: number) => `{"kind":"OTHER","number":"LOG","sequence":${sequence},"time":1}`;
    const index = appendForged(client, other(1));
    appendForged(client, other(2));
    client.prepare('UPDATE log_leaf SET data = ? WHERE id = ?').run(other(3), index);
  });
  await perform(service.store, { kind: 'GetTree' });
  await perform(service.store, { kind: 'GetProvenance', filingNo: 'AS-2026-999999' });
  assert.equal(await isDamaged(service, toFileNow), true);
  await service.close();
  assert.match(
    await faultsOf(await startOn(t, dataDir)),
    /leaf \d+ of the evidence log is not what was recorded/,
  );
});

test('a release over a deleted TRANSFER is rejected before any money moves', async (t) => {
  const service = await startService(t);
  const platform = await service.platform();
  const { filingNo } = (await fileArtwork(service, platform)).json;
  const open = async () => (await openEscrow(service, platform, filingNo)).json.escrowId;
  assert.equal((await releaseEscrow(service, platform, await open())).json.state, 'RELEASED');
  const escrowId = await open();
  forgeIn(join(service.dataDir, 'artseal.db'), (client) => client.exec('DELETE FROM provenance_record'));
  const { size } = await perform(service.store, { kind: 'GetTree' });
  assertRejected(await releaseEscrow(service, platform, escrowId), 500, 'RECORD_DAMAGED');
  const { state, pending } = (await getEscrow(service, platform, escrowId)).json;
  assert.deepEqual([state, pending], ['FROZEN', undefined]);
  assert.equal((await perform(service.store, { kind: 'GetTree' })).size, size);
  assert.equal((await refundEscrow(service, platform, escrowId)).json.state, 'REFUNDED');
});

/** More leaves than a tile has. */
const manyFilings = 300;

/** A registry with so many filings; the second of them was forged together with its leaf. */
async function makeLargeRegistry(t: TestContext) {
  const clock = createManualClock(afternoon.atMs);
  const service = await startService(t, { clock });
  const { caller } = await service.platform();
  const found = await perform(service.store, { kind: 'FindPlatform', name: caller });
  const toFileMany = toFile({ callerId: found?.callerId ?? 0, caller }, afternoon);
  const filed = Array.from({ length: manyFilings }, () => perform(service.store, toFileMany));
  await Promise.all(filed);
  await publishAll(service, clock);
  await service.close();
  const file = join(service.dataDir, 'artseal.db');
  const [forged, neighbour] = forgeIn(file, (client) => {
    const select = client.prepare<[number], FilingRow>('SELECT * FROM filing WHERE id = ?');
    const row = { ...(select.get(2) as FilingRow), author: 'forged' };
    const { hash, data } = leafOfFiling(client, row);
    client.prepare('UPDATE filing SET author = ?, hash = ? WHERE id = 2').run(row.author, hash);
    rewriteLeaf(client, row.leaf_index, data);
    return [row.filing_no, select.get(9)?.filing_no ?? ''];
  });
  return { ...service, forged, neighbour, start: () => startService(t, { clock, dataDir: service.dataDir }) };
}

test('a service with a forged leaf in a large log is not ready, and only the forged record is unreadable', async (t) => {
  const { start, dataDir, forged, neighbour } = await makeLargeRegistry(t);
  const mark = join(dataDir, markFileName);
  const provenanceOf = (filingNo: string) => ({ kind: 'GetProvenance', filingNo }) as const;

  const marked = await start();
  assert.equal(await faultsOf(marked), '', 'a record that the mark covers is checked when it is read');
  assert.equal(await isDamaged(marked, provenanceOf(forged)), true);
  assert.equal(await isDamaged(marked, provenanceOf(neighbour)), false);
  const { code, errors } = await auditOf(marked);
  assert.equal(code, 1);
  assert.match(errors.join(), /500/);
  await marked.close();

  for (const replace of [() => rmSync(mark), () => cpSync(join(dataDir, 'master-key'), mark)]) {
    replace();
    const service = await start();
    assert.match(await faultsOf(service), /leaf 2 of the evidence log is not what was recorded/);
    assert.equal(await isDamaged(service, provenanceOf(forged)), true);
    assert.equal(await isDamaged(service, provenanceOf(neighbour)), false);
    await service.close();
  }
});
