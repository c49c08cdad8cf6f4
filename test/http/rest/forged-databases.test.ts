import assert from 'node:assert/strict';
import { cpSync, existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { ApiError } from '../../../src/domain/reason.ts';
import { markFileName } from '../../../src/evidence/log/verification.ts';
import { type Command, perform } from '../../../src/store/store.ts';
import { time, toFile, toOpen } from '../../store/promises/fixtures.ts';
import { runHere } from '../../support/artseal.ts';
import { fileArtwork, getEscrow, openEscrow, refundEscrow, releaseEscrow } from '../../support/calls.ts';
import { createManualClock } from '../../support/clock.ts';
import { copyFolder } from '../../support/copy-folder.ts';
import { fileScope } from '../../support/file-scope.ts';
import { forgeableAtMs, forgeries, makeForgeableRegistry } from '../../support/forgeries.ts';
import { type FilingRow, forgeIn, leafOfFiling, rewriteLeaf } from '../../support/forging.ts';
import { publishAll } from '../../support/publication.ts';
import { assertRefused } from '../../support/rejected.ts';
import { startService, type TestService } from '../../support/service.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

/** What a service that is started on a forged database does. */
interface Noticed {
  /** The start is refused with these words, or /readyz says them; undefined if it is ready. */
  readonly start?: RegExp;
  /** Whether provenance of the forged filing is RECORD_DAMAGED. */
  readonly read?: boolean;
  /** Whether the evidence of one of its records is. */
  readonly evidence?: boolean;
  /** Whether a new order for it is. */
  readonly order?: boolean;
  /** Whether a list of all filings is. */
  readonly list?: boolean;
  /** Whether the list of the platform is. */
  readonly ownList?: boolean;
  /** Whether a new filing is. */
  readonly file?: boolean;
  /** What `artseal check` says; undefined if it names what was forged. */
  readonly check?: RegExp;
  /** What `artseal log audit` says of what is published then; undefined if the log contradicts nothing. */
  readonly audit?: RegExp;
}

/** By the names of the forgeries. */
const noticed: Readonly<Record<string, Noticed>> = {
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
  caller_id: { ownList: true },
  filed_at_s: { read: true, evidence: true, order: true, list: true, ownList: true },
  recorded_at_s: { read: true, evidence: true },
  number_gap: {},
  log_key: { start: /master key does not open the secret of/ },
};

const registry = await makeForgeableRegistry(fileScope);
const afternoon = time('2026-11-21T15:00:00+00:00');

function copyOfRegistry(t: TestContext): string {
  const dataDir = join(temporaryFolder(t), 'data');
  copyFolder(registry, dataDir);
  return dataDir;
}

/** A service on a copy of the registry, forged if `forge` does. */
async function startOn(t: TestContext, forge: (file: string) => void, hasMark = true): Promise<TestService> {
  const dataDir = copyOfRegistry(t);
  assert.ok(existsSync(join(dataDir, markFileName)));
  if (!hasMark) rmSync(join(dataDir, markFileName));
  forge(join(dataDir, 'artseal.db'));
  return startService(t, { dataDir, clock: createManualClock(forgeableAtMs) });
}

async function faultsOf(service: TestService): Promise<string> {
  const answer = await fetch(`${service.publicUrl}/readyz`);
  const { evidence } = JSON.parse(await answer.text()).parts ?? {};
  return answer.status === 200 ? '' : `${evidence} ${service.logLines.join('\n')}`;
}

async function assertStarts(t: TestContext, start: RegExp | undefined, starting: Promise<TestService>) {
  const service = await starting.catch((error: Error) => error);
  if (service instanceof Error) {
    assert.match(service.message, start ?? /^$/);
    return undefined;
  }
  assert.match(await faultsOf(service), start ?? /^$/);
  t.after(() => service.close());
  return service;
}

function auditOf({ publication, publicUrl }: TestService) {
  const keys = publication.verifierKeys().flatMap((vkey) => ['--key', vkey]);
  return runHere(['log', 'audit', `${publicUrl}/log/`, ...keys], {});
}

/** Whether the store refuses a command with RECORD_DAMAGED, and counts it. */
async function isDamaged(service: TestService, command: Command): Promise<boolean> {
  const count = async () => (await service.store.metrics()).incidents.damagedRecords;
  const before = await count();
  try {
    await perform(service.store, command);
    return false;
  } catch (error) {
    assert.ok(error instanceof ApiError, String(error));
    assert.equal(error.reason, 'RECORD_DAMAGED');
    assert.ok((await count()) > before);
    return true;
  }
}

test('every forgery has a row in the table', () => {
  assert.deepEqual(
    forgeries.map(({ name }) => name),
    Object.keys(noticed),
  );
});

test('the registry is ready before anything is forged, with its mark and without', async (t) => {
  for (const hasMark of [true, false]) {
    const service = await startOn(t, () => {}, hasMark);
    assert.equal(await faultsOf(service), '');
    const filter = { owner: undefined, year: undefined };
    const listed = await perform(service.store, {
      kind: 'ListFilings',
      ...{ filter, page: { from: undefined, size: 100 } },
    });
    for (const { filingNo } of listed.items)
      assert.ok((await perform(service.store, { kind: 'GetProvenance', filingNo })) !== undefined);
    assert.equal(await isDamaged(service, toFile({ callerId: 1, caller: 'a' }, afternoon)), false);
    await service.close();
  }
});

for (const { name, what, forge } of forgeries) {
  const { start, check, audit, ...reads } = noticed[name] ?? {};

  test(`${name}: start, reads and filings are refused as the table says (${what})`, async (t) => {
    let forged = '';
    const starting = startOn(t, (file) => {
      forged = forge(file);
    });
    const service = await assertStarts(t, start, starting);
    if (service === undefined) return;
    const [filingNo] = /AS-\d{4}-\d{6}/.exec(forged) ?? [];
    const page = { from: undefined, size: 100 };
    const list = (owner: number | undefined) =>
      isDamaged(service, { kind: 'ListFilings', filter: { owner, year: undefined }, page });
    const by = (callerId: number) => ({ callerId, caller: 'a platform' });
    const owners = [1, 2];
    const lists = await Promise.all(owners.map(list));
    const damagedOf = (command: Command) => isDamaged(service, command);
    const evidence = [1, 2, 3].map((sequence) => ({
      ...({ kind: 'FindRecord', sequence, owner: undefined } as const),
      filingNo: filingNo ?? 'AS-2026-000001',
    }));
    assert.deepEqual(
      {
        read: filingNo !== undefined && (await isDamaged(service, { kind: 'GetProvenance', filingNo })),
        evidence: (await Promise.all(evidence.map(damagedOf))).includes(true),
        order:
          name !== 'number_gap' && (await damagedOf(toOpen(by(1), filingNo ?? '', { owner: undefined }))),
        list: await list(undefined),
        ownList: lists.some(Boolean),
        file: await isDamaged(service, toFile(by(1), afternoon)),
      },
      {
        ...{ read: false, evidence: false, order: false, list: false },
        ...{ ownList: false, file: false },
        ...reads,
      },
    );
  });
}

for (const { name, forge } of forgeries) {
  const { start, audit } = noticed[name] ?? {};
  if (start !== undefined) continue;

  test(`${name}: artseal log audit finds what the signed log contradicts, and nothing else`, async (t) => {
    const dataDir = copyOfRegistry(t);
    forge(join(dataDir, 'artseal.db'));
    const clock = createManualClock(forgeableAtMs);
    const service = await startService(t, { dataDir, clock });
    await publishAll(service, clock);
    const { code, errors } = await auditOf(service);
    assert.equal(code, audit === undefined ? 0 : 7);
    assert.match(errors.join(), audit ?? /^$/);
  });
}

test('a release over a TRANSFER that was deleted is refused before any money moves', async (t) => {
  const service = await startService(t);
  const platform = await service.platform();
  const { filingNo } = (await fileArtwork(service, platform)).json;
  const open = async () => (await openEscrow(service, platform, filingNo)).json.escrowId;
  assert.equal((await releaseEscrow(service, platform, await open())).json.state, 'RELEASED');
  const escrowId = await open();
  forgeIn(join(service.dataDir, 'artseal.db'), (client) => client.exec('DELETE FROM provenance_record'));
  const { size } = await perform(service.store, { kind: 'GetTree' });
  assertRefused(await releaseEscrow(service, platform, escrowId), 500, 'RECORD_DAMAGED');
  const { state, pending } = (await getEscrow(service, platform, escrowId)).json;
  assert.deepEqual([state, pending], ['FROZEN', undefined]);
  assert.equal((await perform(service.store, { kind: 'GetTree' })).size, size);
  assert.equal((await refundEscrow(service, platform, escrowId)).json.state, 'REFUNDED');
});

for (const { name, forge } of forgeries) {
  test(`${name}: artseal check has a fault that names it`, async (t) => {
    const dataDir = copyOfRegistry(t);
    const forged = forge(join(dataDir, 'artseal.db'));
    const env = {
      ARTSEAL_DATA_DIR: dataDir,
      ARTSEAL_PUBLIC_ADDR: '127.0.0.1:0',
      ARTSEAL_INTERNAL_ADDR: '127.0.0.1:0',
    };
    const { code, printed } = await runHere(['check', '--json'], env);
    assert.equal(code, 1);
    const found = printed.map((line) => JSON.parse(line));
    const fault = found.find(({ part, level }) => part === 'evidence log' && level === 'fault');
    assert.match(fault?.text ?? '', noticed[name]?.check ?? new RegExp(RegExp.escape(forged)));
  });
}

test('a gap that was shortened gives no number out again', async (t) => {
  const forgery = forgeries.find(({ name }) => name === 'number_gap');
  const service = await startOn(t, (file) => forgery?.forge(file));
  const untouched = await startOn(t, () => {});
  const command = toFile({ callerId: 1, caller: 'a' }, afternoon);
  const [one, other] = [await perform(service.store, command), await perform(untouched.store, command)];
  assert.equal(one.filingNo, other.filingNo);
});

/** More leaves than a tile has. */
const manyFilings = 300;

/** A registry with so many filings; the second of them was forged together with its leaf. */
async function makeLargeRegistry(t: TestContext) {
  const clock = createManualClock(afternoon.atMs);
  const service = await startService(t, { clock });
  const { caller } = await service.platform();
  const found = await perform(service.store, { kind: 'FindPlatform', name: caller });
  const by = { callerId: found?.callerId ?? 0, caller };
  const filed = Array.from({ length: manyFilings }, () => perform(service.store, toFile(by, afternoon)));
  await Promise.all(filed);
  await publishAll(service, clock);
  await service.close();
  const file = join(service.dataDir, 'artseal.db');
  const [forged, neighbour] = forgeIn(file, (client) => {
    const select = client.prepare<[number], FilingRow>('SELECT * FROM filing WHERE id = ?');
    const row = { ...(select.get(2) as FilingRow), author: 'forged' };
    const { hash, data } = leafOfFiling(row);
    client.prepare('UPDATE filing SET author = ?, hash = ? WHERE id = 2').run(row.author, hash);
    rewriteLeaf(client, row.leaf_index, data);
    return [row.filing_no, select.get(9)?.filing_no ?? ''];
  });
  return { ...service, forged, neighbour, start: () => startService(t, { clock, dataDir: service.dataDir }) };
}

test('a forged leaf of a large log keeps the service from being ready, and its record alone from being read', async (t) => {
  const { start, dataDir, forged, neighbour } = await makeLargeRegistry(t);
  const mark = join(dataDir, markFileName);
  const provenanceOf = (filingNo: string) => ({ kind: 'GetProvenance', filingNo }) as const;

  const marked = await start();
  assert.equal(await faultsOf(marked), '', 'what the mark covers is compared when it is read');
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
