import assert from 'node:assert/strict';
import { copyFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { type TestContext, test } from 'node:test';
import type Sqlite from 'better-sqlite3';
import { type LogEventDetail, logEventLeafData } from '../../../src/domain/leaf.ts';
import { verifyBackup } from '../../../src/operations/backup/verify.ts';
import { createSqliteStore } from '../../../src/store/sqlite/engine.ts';
import { faultsInLog } from '../../../src/store/sqlite/log-check.ts';
import { perform } from '../../../src/store/store.ts';
import { newLogKey, sandbox } from '../../store/promises/fixtures.ts';
import { tester } from '../../support/audit-log.ts';
import { fileScope } from '../../support/file-scope.ts';
import { forgeableAtMs, makeForgeableRegistry } from '../../support/forgeries.ts';
import { appendForged, forgeIn } from '../../support/forging.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { backedUp, unwatched } from './folder.ts';

const genuine = await makeForgeableRegistry(fileScope);

test('a backup of a genuine database has no fault', async (t) => {
  const { faults } = await verifyBackup(await backedUp(t, genuine, forgeableAtMs), unwatched);
  assert.deepEqual(faults, []);
});

/** A copy of the genuine database, or of that of another folder. */
function databaseCopy(t: TestContext, dataDir = genuine): string {
  const database = join(temporaryFolder(t), 'artseal.db');
  copyFileSync(join(dataDir, 'artseal.db'), database);
  return database;
}

/** Changes of a row or two, and the first fault. test/http/rest/forged-databases.test.ts has forgeries that take more. */
const changedRows: Readonly<Record<string, readonly [sql: string, fault: RegExp]>> = {
  'an erasure at another time': [
    "UPDATE filing SET erased_at_s = erased_at_s - 1 WHERE filing_no = 'AS-2015-000002'",
    /^AS-2015-000002 was erased at another time than log event [0-9]+ says$/,
  ],
  'a price of an erased filing': [
    "UPDATE filing SET price = 1 WHERE filing_no = 'AS-2015-000002'",
    /^AS-2015-000002 is not what its evidence hash was made of$/,
  ],
  'the timestamp of an erased filing': [
    "UPDATE filing SET timestamp = replace(timestamp, '2015-06-01', '2015-05-31') WHERE filing_no = 'AS-2015-000002'",
    /^AS-2015-000002 has a timestamp of another time than leaf /,
  ],
  'a salt of an erased filing’s transfer': [
    "UPDATE provenance_record SET salt = zeroblob(32) WHERE filing_no = 'AS-2015-000001'",
    /^record 2 of AS-2015-000001 is not what leaf [0-9]+ of the evidence log commits to$/,
  ],
  'a filing of no caller’s chain': [
    "UPDATE filing SET previous_id = NULL WHERE filing_no = 'AS-2026-000003'",
    /^AS-2026-000003 names none as the filing of its caller before it, which is AS-2026-000001$/,
  ],
  'a filing that is not there in a chain': [
    "UPDATE filing SET previous_id = 999 WHERE filing_no = 'AS-2026-000003'",
    /^AS-2026-000003 names a filing that does not exist as the filing of its caller before it/,
  ],
  'a chain that begins with an earlier filing': [
    'UPDATE latest_filing SET filing_id = (SELECT min(id) FROM filing) WHERE year = 2026 AND caller_id = 1',
    /^AS-2015-000001 is noted as the last filing of caller and year [0-9]+ 2026, which is AS-2026-/,
  ],
  'a chain without its beginning': [
    'DELETE FROM latest_filing WHERE year = 2015 AND caller_id = 1',
    /^AS-2015-000003 is not noted as the last filing of caller and year [0-9]+ 2015$/,
  ],
  'a missing gap': [
    "DELETE FROM number_gap WHERE kind = 'FILING'",
    /^the evidence log says that the numbers AS-2026-000006 to AS-2026-500002 were skipped, and the database does not$/,
  ],
  'a gap that was put in': [
    "INSERT INTO number_gap VALUES ('FILING', 2014, 0, 5, 1)",
    /^the numbers AS-2014-000001 to AS-2014-000005 were skipped, and the evidence log does not say so$/,
  ],
  'a key of another time': [
    'UPDATE log_key SET added_at_s = added_at_s - 1',
    /^the evidence log does not say that the key artseal\.invalid\/\S+ was added then$/,
  ],
  'a key that was put in': [
    "INSERT INTO log_key (vkey, sealed_seed, added_at_s) VALUES ('forged', x'00', 1)",
    /^the evidence log does not say that the key forged was added then$/,
  ],
  'a missing key': [
    'DELETE FROM log_key',
    /^the evidence log says that the key artseal\.invalid\/\S+ was added, and the database does not have it$/,
  ],
  'a key that was retired': [
    "UPDATE log_key SET sealed_seed = x'', ends_at_s = added_at_s",
    /^the key artseal\.invalid\/\S+ is retired otherwise than the evidence log says$/,
  ],
  'another size that the name begins at': [
    'UPDATE log_origin SET first_size = 2',
    /^the evidence log does not say that its name is artseal\.invalid\/\S+ from leaf 2 on$/,
  ],
  'a name that was put in': [
    "INSERT INTO log_origin (origin, first_size) VALUES ('forged', 3); DELETE FROM log_checkpoint",
    /^the evidence log does not say that its name is forged from leaf 3 on$/,
  ],
  'a missing name': [
    'DELETE FROM log_origin; DELETE FROM log_checkpoint',
    /^the evidence log says that it continues as artseal\.invalid\/\S+, and the database does not$/,
  ],
  'another salt': [
    "UPDATE filing SET salt = zeroblob(32) WHERE filing_no = 'AS-2026-000003'",
    /^AS-2026-000003 is not what leaf 9 of the evidence log commits to$/,
  ],
  'a transfer that was moved': [
    "UPDATE provenance_record SET at = '1999-01-01' WHERE leaf_index = 12",
    /^record 2 of AS-2026-000001 is not what leaf 12 of the evidence log commits to$/,
  ],
  'a filing without its salt that was not erased': [
    "UPDATE filing SET salt = NULL WHERE filing_no = 'AS-2026-000003'",
    /^AS-2026-000003 is not what its evidence hash was made of$/,
  ],
  'a filing that names another leaf': [
    "UPDATE filing SET leaf_index = 99 WHERE filing_no = 'AS-2026-000003'",
    /^leaf 9 of the evidence log is of AS-2026-000003, which is not there or names another leaf$/,
  ],
  'a filing that was put in': [
    `INSERT INTO filing (filing_no, caller_id, author, era, size, material, condition, price, hash, timestamp, filed_at_s, salt, leaf_index, record_version)
     SELECT 'AS-2026-000099', caller_id, author, era, size, material, condition, price, hash, timestamp, filed_at_s, salt, leaf_index, record_version
     FROM filing WHERE filing_no = 'AS-2026-000003'`,
    /^AS-2026-000099 has no leaf in the evidence log$/,
  ],
  'a leaf that was changed': [
    `UPDATE log_leaf SET data = replace(data, 'commitment":"', 'commitment":"0') WHERE id = 18`,
    /^leaf 18 of the evidence log \(AS-2026-500005\) is not what its hashes were made of$/,
  ],
  'a hash that was changed': [
    'UPDATE log_leaf SET hashes = zeroblob(length(hashes)) WHERE id = 5',
    /^leaf 5 of the evidence log \(record 2 of AS-2015-000001\) is not what its hashes were made of$/,
  ],
  'a leaf that was taken away from the end': [
    "DELETE FROM log_leaf WHERE id = 18; DELETE FROM filing WHERE filing_no = 'AS-2026-500005'",
    /^a checkpoint of 19 leaves was published, and the evidence log has 18$/,
  ],
  'a leaf that was taken away': [
    'DELETE FROM log_leaf WHERE id = 5',
    /^leaf 5 of the evidence log is not there$/,
  ],
  'a checkpoint of another tree': [
    "UPDATE log_checkpoint SET note = replace(note, char(10) || '19' || char(10), char(10) || '19' || char(10) || 'AAAA')",
    /^the published checkpoint of 19 leaves is not of this evidence log$/,
  ],
  'a checkpoint of another log': [
    "UPDATE log_checkpoint SET note = 'other.' || note",
    /^the kept checkpoint of 19 leaves is of another log or size$/,
  ],
  'a log event that was changed': [
    'UPDATE log_event SET detail = \'{"timeS":1}\' WHERE sequence = 3',
    /^leaf 6 of the evidence log is of a log event that the database does not have$/,
  ],
  'a log event that was put in': [
    "INSERT INTO log_event VALUES (9, 'CLOCK_ACCEPTED', '{}', 5, 99)",
    /^log event 9 has no leaf in the evidence log$/,
  ],
};

for (const [what, [sql, fault]] of Object.entries(changedRows)) {
  test(`a change that contradicts the log is named: ${what}`, async (t) => {
    const database = databaseCopy(t);
    forgeIn(database, (client) => client.exec(sql));
    const [first = '', ...more] = await faultsInLog(database);
    assert.match(first, fault);
    // A tree that was changed is not that of the checkpoint.
    assert.deepEqual(
      more.filter((other) => !other.startsWith('the published checkpoint')),
      [],
    );
  });
}

const eventTimeS = forgeableAtMs / 1_000;
const before = eventTimeS - 6 * 366 * 86_400;

/** Erasures that contradict the database, and the fault that names them. */
const wrongErasures: readonly (readonly [detail: LogEventDetail, fault: RegExp])[] = [
  [{ records: 1, before }, /^log event 6 does not say which leaves before it were erased$/],
  [{ records: 2, leaves: '4', before }, /^log event 6 does not say which leaves/],
  [{ records: 1, leaves: '04', before }, /^log event 6 does not say which leaves/],
  [{ records: 1, leaves: '4' }, /^log event 6 does not say which leaves/],
  [{ records: 1, leaves: '1000', before }, /^log event 6 does not say which leaves/],
  [{ records: 1, leaves: '0', before }, /^log event 6 says that leaf 0 was erased, which is of no record$/],
  [{ records: 1, leaves: '2', before }, /^the log events 4 and 6 both say that leaf 2 was erased$/],
  [{ records: 1, leaves: '4', before }, /^log event 6 says that AS-2015-000003 was erased, and it is there$/],
];

// A log with a name of its own is of a production for its auditors, so no clock of a sandbox counts.
for (const [name, ahead, sql] of [
  ['whatever the time of its event', {}, ''],
  [
    ...(['whatever it says of the clock of a sandbox', { ahead: 315_360_000 }] as const),
    "UPDATE log_origin SET origin = 'log.example'; DELETE FROM log_checkpoint",
  ],
  ['although it says that the clock of a sandbox is over ten years ahead', { ahead: 315_360_001 }, ''],
] as const)
  test(`an erasure before the end of retention is named, ${name}`, async (t) => {
    const database = databaseCopy(t);
    const filingNo = 'AS-2026-000003';
    forgeIn(database, (client) => {
      client.exec(sql);
      const select = client.prepare('SELECT leaf_index FROM filing WHERE filing_no = ?');
      const index = select.pluck().get(filingNo);
      appendEvent(client, { records: 1, leaves: String(index), before: eventTimeS, ...ahead });
      client
        .prepare(
          `UPDATE filing SET author = '', era = '', size = '', material = '', condition = '', price = 0, hash = '',
            salt = NULL, erased_at_s = ? WHERE filing_no = ?`,
        )
        .run(eventTimeS, filingNo);
    });
    assert.deepEqual(await faultsInLog(database), [
      `log event 6 says that ${filingNo} was erased, before its retention ended`,
    ]);
  });

/** Appends the sixth event of the log, an erasure, as the product would. */
function appendEvent(client: Sqlite.Database, detail: LogEventDetail): void {
  const act = { kind: 'RECORDS_ERASED', sequence: 6, timeS: eventTimeS, detail } as const;
  client
    .prepare('INSERT INTO log_event VALUES (?, ?, ?, ?, ?)')
    .run(6, act.kind, JSON.stringify(detail), eventTimeS, appendForged(client, logEventLeafData(act)));
}

test('an erasure that did not happen is named', async (t) => {
  for (const [detail, fault] of wrongErasures) {
    const database = databaseCopy(t);
    forgeIn(database, (client) => appendEvent(client, detail));
    assert.match((await faultsInLog(database))[0] ?? '', fault, JSON.stringify(detail));
  }
});

test('keys and names of a forked log with a rotated key agree with its events', async (t) => {
  const database = databaseCopy(t);
  const dataDir = dirname(database);
  const store = createSqliteStore({ dataDir, ...sandbox });
  t.after(() => store.close());
  const by = { ...tester, atS: eventTimeS };
  const [next, last] = [newLogKey(), newLogKey()];
  await perform(store, { kind: 'RotateLogKey', by, key: next, endsAtS: eventTimeS + 60 });
  await perform(store, { kind: 'EndLogKey', vkey: next.vkey, atS: eventTimeS + 61 });
  const origin = 'log.example/2';
  await perform(store, {
    kind: 'ForkLog',
    by: { ...by, atS: eventTimeS + 62 },
    origin,
    key: last,
    previous: 'note',
  });
  await store.close();
  assert.deepEqual(await faultsInLog(database), []);
  for (const [sql, fault] of [
    [
      "UPDATE log_origin SET origin = 'forged' WHERE id = 2",
      /^the evidence log does not say that its name is forged/,
    ],
    [
      'UPDATE log_origin SET first_size = first_size + 1 WHERE id = 2',
      /its name is log\.example\/2 from leaf/,
    ],
    [
      'DELETE FROM log_origin WHERE id = 2',
      /says that it continues as log\.example\/2, and the database does not$/,
    ],
    ["UPDATE log_key SET sealed_seed = x'00' WHERE id = 2", /^the key log\.example\S+ is retired otherwise/],
    [
      'UPDATE log_key SET ends_at_s = ends_at_s + 99 WHERE id = 2',
      /^the key log\.example\S+ is retired otherwise/,
    ],
    ['UPDATE log_key SET ends_at_s = NULL WHERE id = 2', /^the key log\.example\S+ is retired otherwise/],
  ] as const) {
    const copy = databaseCopy(t, dataDir);
    forgeIn(copy, (client) => client.exec(sql));
    assert.match((await faultsInLog(copy))[0] ?? '', fault, sql);
  }
});
