import assert from 'node:assert/strict';
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { openDatabase } from '../../src/store/sqlite/database.ts';
import { createSqliteStore } from '../../src/store/sqlite/engine.ts';
import { copyBefore } from '../../src/store/sqlite/upgrade.ts';
import { perform } from '../../src/store/store.ts';
import { addFurtherMigration, presentSchema } from '../store/further-migration.ts';
import { acceptClock, painting, sandbox, time } from '../store/promises/fixtures.ts';
import { artsealWith } from '../support/artseal.ts';
import { commandsOver, testEveryConnection } from '../support/connections.ts';
import { readableNames } from '../support/copy-folder.ts';
import { issueInto } from '../support/issued.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

/** A text in all filings that will be erased. */
const going = 'who is to be forgotten';
const mark = (place: number) => `author ${place} ${going}.`;

/** A registry with `old` filings of 2015, one of 2016, and one of today. */
async function registryOfOld(t: TestContext, old: number) {
  const dataDir = temporaryFolder(t);
  const { platforms } = await issueInto(dataDir, 1);
  const store = createSqliteStore({ dataDir, ...sandbox });
  const by = store.findKey(platforms[0]?.apiKey ?? '') ?? assert.fail();
  const file = (author: string, timestamp: string) => {
    const artwork = { ...painting, author, condition: `${author} `.repeat(60) };
    return perform(store, { kind: 'FileArtwork', artwork, at: time(timestamp), by });
  };
  await Promise.all(
    Array.from({ length: old }, (_, place) => file(mark(place), '2015-06-01T12:00:00+00:00')),
  );
  await file(mark(old), '2016-06-01T12:00:00+00:00');
  await acceptClock(store, time(new Date().toISOString()));
  await file('author who stays', `${new Date().toISOString().slice(0, 19)}+00:00`);
  await store.close();
  return dataDir;
}

/** The files of a folder that contain a text. */
const holding = (dataDir: string, text: string): string[] =>
  readableNames(dataDir).filter((name) => readFileSync(join(dataDir, name)).includes(text));

const yearOf = (year: number, count: number) => ({
  ...{ year, filings: count, records: count, firstFilingNo: `AS-${year}-000001` },
  lastFilingNo: `AS-${year}-${String(count).padStart(6, '0')}`,
});

/** What `--json` shows of all of them. */
const shownYears = { filings: 521, records: 521, years: [yearOf(2015, 520), yearOf(2016, 1)] };
const years = [
  '2015: 520 filings with 520 records, AS-2015-000001 to AS-2015-000520',
  '2016: 1 filings with 1 records, AS-2016-000001 to AS-2016-000001',
];

test('a purge lists the old filings; with --erase their texts are in no file', async (t) => {
  const dataDir = await registryOfOld(t, 520);
  const artseal = await commandsOver(t, 'a stopped folder', { dataDir });
  const bytes = readFileSync(join(dataDir, 'artseal.db'));
  const shown = await artseal.lines('retention purge');
  assert.deepEqual(shown.toSpliced(2, 1), [...years, 'nothing was changed: --erase erases them for good']);
  const toBeErased = /^to erase, recorded up to (.+)T\d\d:\d\d:\d\d\+00:00: 521 filings with 521 records$/;
  const day = toBeErased.exec(shown[2] ?? '')?.[1] ?? '';
  // Five years before the newest filing, and a day.
  assert.ok(Math.abs(Date.now() - Date.parse(day) - 5 * 365.25 * 86_400_000) < 3 * 86_400_000, shown.join());
  const { recordedUpTo, ...counted } = await artseal.json('retention purge');
  assert.deepEqual(counted, { erased: false, ...shownYears });
  assert.ok(shown[2]?.includes(`up to ${recordedUpTo}:`), recordedUpTo);
  assert.deepEqual(readFileSync(join(dataDir, 'artseal.db')), bytes);
  assert.deepEqual(holding(dataDir, going), ['artseal.db']);

  const erased = await artseal.lines('retention purge --erase --reason yearly');
  assert.deepEqual(erased.slice(0, 3), [...years, 'erased: 521 filings with 521 records']);
  assert.match(erased[3] ?? '', /artseal\.db was rewritten: no erased text is left in it/);
  const left = Buffer.concat(readableNames(dataDir).map((name) => readFileSync(join(dataDir, name))));
  for (let place = 0; place <= 520; place += 1) assert.ok(!left.includes(mark(place)), mark(place));
  assert.deepEqual(holding(dataDir, 'author who stays'), ['artseal.db']);

  assert.equal((await artseal.list('audit-log'))[0].reason, 'yearly');
  assert.equal((await artseal.lines('retention purge --erase'))[0], 'erased: 0 filings with 0 records');
});

for (const connection of ['a running server', 'a remote server'] as const)
  test(`over ${connection}: a purge erases the texts from the files of the server`, async (t) => {
    const dataDir = await registryOfOld(t, 520);
    const artseal = await commandsOver(t, connection, { dataDir });
    const counted = await artseal.lines('retention purge');
    assert.match(counted.at(-2) ?? '', /: 521 filings with 521 records$/);
    const inUse = connection === 'a running server' ? [join(dataDir, 'artseal.db')] : null;
    assert.deepEqual(await artseal.json('retention purge --erase'), {
      ...{ erased: true, ...shownYears, left: inUse },
    });
    const [erased, left, backups, ...more] = await artseal.lines('retention purge --erase');
    assert.deepEqual([erased, more], ['erased: 0 filings with 0 records', []]);
    assert.match(
      left ?? '',
      connection === 'a running server'
        ? /^the server runs, so .*artseal\.db was not rewritten: unused parts/
        : /^unused parts of the database of the server may hold erased texts: on its machine, stop it/,
    );
    assert.equal(backups, 'backups have the erased texts until they are rotated out');
    assert.deepEqual(holding(dataDir, going), []);
  });

test('a purge names the copy of an upgrade, which still has the erased texts', async (t) => {
  const dataDir = await registryOfOld(t, 3);
  const file = join(dataDir, 'artseal.db');
  addFurtherMigration(t);
  openDatabase({ dataDir, ...sandbox }).close();
  const copy = copyBefore(file, presentSchema);
  const artseal = artsealWith({ ARTSEAL_DATA_DIR: dataDir });
  const printed = await artseal.lines('retention purge --erase');
  assert.ok(printed.includes(`${copy}, a copy of an upgrade, has the erased texts: remove it`));
  const again = await artseal.json('retention purge --erase');
  assert.deepEqual(again, { erased: true, filings: 0, records: 0, years: [], left: [copy] });
  rmSync(copy);
  assert.deepEqual(holding(dataDir, going), []);
});

testEveryConnection('retention');
