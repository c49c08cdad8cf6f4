import assert from 'node:assert/strict';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import type Sqlite from 'better-sqlite3';
import { ApiError } from '../../../src/domain/reason.ts';
import { type Command, perform } from '../../../src/store/store.ts';
import { opened } from '../../store/promises/fixtures.ts';
import { tester } from '../../support/audit-log.ts';
import { createManualClock } from '../../support/clock.ts';
import { copyFolder } from '../../support/copy-folder.ts';
import { fileScope } from '../../support/file-scope.ts';
import { forgeableAtMs, forgeries, makeForgeableRegistry } from '../../support/forgeries.ts';
import { appendForged, forgeIn } from '../../support/forging.ts';
import { startService, type TestService } from '../../support/service.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const registry = await makeForgeableRegistry(fileScope);
const page = { from: undefined, size: 100 };

/** A service on a copy of the registry that was forged. */
async function startOn<T>(t: TestContext, forge: (file: string) => T) {
  const dataDir = join(temporaryFolder(t), 'data');
  copyFolder(registry, dataDir);
  const file = join(dataDir, 'artseal.db');
  const forged = forge(file);
  return {
    file,
    forged,
    service: await startService(t, { dataDir, clock: createManualClock(forgeableAtMs) }),
  };
}

const assertDamaged = ({ store }: TestService, command: Command) =>
  assert.rejects(
    perform(store, command),
    (error) => error instanceof ApiError && error.reason === 'RECORD_DAMAGED',
    command.kind,
  );

const one = (client: Sqlite.Database, query: string) => client.prepare<[], string>(query).pluck().get() ?? '';

/** The filing that was sold twice. */
const sold = `(SELECT filing_no FROM provenance_record GROUP BY filing_no HAVING count(*) = 2)`;

test('a filing that is marked as erased by hand is not left out of a list', async (t) => {
  const forgery = forgeries.find(({ name }) => name === 'faked erasure');
  const { file, forged, service } = await startOn(t, (database) => forgery?.forge(database) ?? '');
  const owner = forgeIn(file, (client) =>
    Number(one(client, `SELECT caller_id FROM filing WHERE filing_no = '${forged}'`)),
  );
  for (const by of [undefined, owner])
    await assertDamaged(service, { kind: 'ListFilings', filter: { owner: by, year: undefined }, page });
});

test('a filing whose caller is not there is not left out of the list of all', async (t) => {
  const { service } = await startOn(t, (file) =>
    forgeIn(file, (client) =>
      client.exec('UPDATE filing SET caller_id = 99 WHERE id = (SELECT max(id) FROM filing)'),
    ),
  );
  await assertDamaged(service, { kind: 'ListFilings', filter: { owner: undefined, year: undefined }, page });
});

test('a TRANSFER without its salt is not said to be erased', async (t) => {
  const { service, forged } = await startOn(t, (file) =>
    forgeIn(file, (client) => {
      const filingNo = one(client, `SELECT ${sold}`);
      client.exec(
        `UPDATE provenance_record SET salt = NULL WHERE filing_no = '${filingNo}' AND position = 3`,
      );
      return filingNo;
    }),
  );
  await assertDamaged(service, { kind: 'FindRecord', filingNo: forged, sequence: 3, owner: undefined });
});

test('nothing is appended to a filing that lacks a TRANSFER before its last one', async (t) => {
  const { service, forged } = await startOn(t, (file) =>
    forgeIn(file, (client) => {
      const filingNo = one(client, `SELECT ${sold}`);
      client.exec(`DELETE FROM provenance_record WHERE filing_no = '${filingNo}' AND position = 2`);
      return filingNo;
    }),
  );
  await assert.rejects(
    opened(service.store, { callerId: 1, caller: 'a platform' }, forged),
    (error) => error instanceof ApiError && error.reason === 'RECORD_DAMAGED',
  );
});

test('a filing that was made older by hand is not erased', async (t) => {
  const { file, service, forged } = await startOn(t, (database) =>
    forgeIn(database, (client) => {
      const filingNo = one(
        client,
        `SELECT filing_no FROM filing WHERE filed_at_s > unixepoch('2026-01-01')
          AND filing_no NOT IN (SELECT filing_no FROM provenance_record) LIMIT 1`,
      );
      client.exec(
        `UPDATE filing SET filed_at_s = filed_at_s - 6 * 366 * 86400 WHERE filing_no = '${filingNo}'`,
      );
      return filingNo;
    }),
  );
  const by = { ...tester, atS: forgeableAtMs / 1_000 };
  await assertDamaged(service, { kind: 'EraseFilings', by, filingNos: [forged] });
  forgeIn(file, (client) =>
    assert.notEqual(one(client, `SELECT hash FROM filing WHERE filing_no = '${forged}'`), ''),
  );
});

test('a leaf that another process appended with a wrong hash is found at the next start as well', async (t) => {
  const { file, service } = await startOn(t, () => undefined);
  forgeIn(file, (client) => {
    const other = (sequence: number) => `{"kind":"OTHER","number":"LOG","sequence":${sequence},"time":1}`;
    const index = appendForged(client, other(1));
    appendForged(client, other(2));
    client.prepare('UPDATE log_leaf SET data = ? WHERE id = ?').run(other(3), index);
  });
  await perform(service.store, { kind: 'GetTree' });
  await perform(service.store, { kind: 'GetProvenance', filingNo: 'AS-2026-999999' });
  await service.close();
  const again = await startService(t, {
    dataDir: service.dataDir,
    clock: createManualClock(forgeableAtMs),
  });
  const answer = await fetch(`${again.publicUrl}/readyz`);
  assert.equal(answer.status, 503);
  assert.match(again.logLines.join('\n'), /leaf \d+ of the evidence log is not what was recorded/);
});
