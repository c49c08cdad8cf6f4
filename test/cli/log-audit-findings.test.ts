import assert from 'node:assert/strict';
import { test } from 'node:test';
import { begunS, commit, filingAt, SmallLog, smallLog, transferAt } from '../evidence/verifier/small-log.ts';
import { publicationOf } from '../evidence/verifier/small-publication.ts';
import { assertGood, assertRejected, assertWarns, audited, auditedAtS, auditor } from './auditor.ts';

/** Findings of an audit beyond numbers and times, and which leaves it reads. */

const dayS = 86_400;
/** Six years before the small log: records of then were kept long enough. */
const longAgoS = begunS - 6 * 365 * dayS;
const keptS = begunS - (5 * 365 + 3) * dayS;

/** A log of three old filings, leaves 1 to 3, and a new one, leaf 5; none is erased yet. */
function agedLog(): SmallLog {
  const log = smallLog(3, longAgoS).addKeys();
  log.record(filingAt(begunS, 1));
  return log;
}

const erase = (log: SmallLog, detail: Readonly<Record<string, unknown>>, timeS = begunS + dayS) =>
  log.act('RECORDS_ERASED', { before: keptS, ...detail }, timeS);

/** Erasures that make a log wrong. */
const erasures: Readonly<Record<string, readonly [message: RegExp, ...details: Record<string, unknown>[]]>> =
  {
    'that is too early': [
      /leaf 6 of the log erases records from less than 5 years before 2026-11-22/,
      { records: 1, leaves: '1', before: begunS + dayS - (5 * 365 - 1) * dayS },
    ],
    'that is too early and names no leaves': [/less than 5 years/, { records: 1, before: begunS }],
    'of a record that is too young': [
      /erases leaf 5 of 2026-11-21T01:15:00Z, after 2021/,
      { records: 2, leaves: '1,5' },
    ],
    'of an event of the log': [/erases leaf 4, which is not a record/, { records: 4, leaves: '1-4' }],
    'of a record twice': [
      /leaf 7 of the log erases leaf 2, which is not a record or was erased before/,
      { records: 2, leaves: '1-2' },
      { records: 2, leaves: '2-3' },
    ],
    'of other leaves than it counts': [
      /says that 2 records were erased, but names 3/,
      { records: 2, leaves: '1-3' },
    ],
    'of leaves that do not exist yet': [/in an unknown form: "7"/, { records: 2, leaves: '1,7' }],
    'of leaves out of order': [/in an unknown form: "1"/, { records: 2, leaves: '2,1' }],
    'of leaves in another form': [/in an unknown form: "1-"/, { records: 1, leaves: '1-' }],
    'that is far too early': [/from less than 5 years before/, { records: 1, before: 2 ** 53 - 1 }],
    'that does not say when': [/does not say what was erased/, { records: 1, before: 'then' }],
  };
for (const [name, [message, ...details]] of Object.entries(erasures)) {
  test(`an erasure ${name}: exit code 7`, async (t) => {
    const own = agedLog();
    for (const detail of details) erase(own, detail);
    assertRejected(await audited(t, own), 7, message);
  });
}

test('an erasure of records that were kept long enough is valid, and a later audit remembers it', async (t) => {
  const own = agedLog();
  erase(own, { records: 2, leaves: '1,3' });
  const { audit, pin, publish } = await auditor(t, own);
  assertGood(await audit('--pin', pin));
  erase(own, { records: 1, leaves: '2' });
  publish();
  assertGood(await audit('--pin', pin));
  erase(own, { records: 1, leaves: '3' });
  publish();
  assertRejected(
    await audit('--pin', pin),
    7,
    /leaf 8 of the log erases leaf 3, which is not a record or was/,
  );
});

test('an erasure counts the advanced clock as age only in a log whose name no production has', async (t) => {
  const sandbox = 'artseal.invalid/0123456789abcdef';
  const tenYearsS = 315_360_000;
  for (const [origin, ahead, isValid] of [
    [sandbox, 6 * 365 * dayS, true],
    [sandbox, tenYearsS, true],
    [sandbox, 4 * 365 * dayS, false],
    [sandbox, tenYearsS + 1, false],
    [sandbox, -1, false],
    [sandbox, 'years', false],
    ['artseal.invalid.example/log', 6 * 365 * dayS, false],
    ['log.example/artworks', 6 * 365 * dayS, false],
  ] as const) {
    const own = new SmallLog(origin);
    own.act('LOG_BEGUN', { adopted: 0 }, begunS);
    own.addKeys();
    own.record(filingAt(begunS, 1));
    erase(own, { records: 1, leaves: `${own.leaves.length - 1}`, before: begunS, ahead });
    const result = await audited(t, own);
    if (isValid) assertGood(result);
    else assertRejected(result, 7, /erases records from less than 5 years before/);
  }
});

test('an audit warns of an erasure that does not name its leaves', async (t) => {
  const own = agedLog();
  erase(own, { records: 1 });
  erase(own, { records: 1 });
  const { audit } = await auditor(t, own);
  assertWarns(
    await audit(),
    'leaf 6 (and 1 more) is an erasure that does not name the leaves that it erases',
  );
  const { warnings } = JSON.parse((await audit('--json')).printed.join());
  assert.equal(warnings[0].kind, 'ERASURE_UNNAMED');
});

test('each audit warns of leaves that are dated in the future', async (t) => {
  const own = smallLog(3).addKeys();
  own.record(filingAt(auditedAtS + 300, 1));
  const { audit, pin, publish } = await auditor(t, own);
  assertGood(await audit('--pin', pin));
  own.record(filingAt(auditedAtS + 301, 2));
  own.act('MOON_SEEN', {}, auditedAtS + 20 * dayS);
  own.record(filingAt(auditedAtS + 400 * dayS, 1));
  publish();
  for (const words of [['--pin', pin], ['--pin', pin], []]) {
    assertWarns(
      await audit(...words),
      'leaf 6 (and 2 more) is dated more than 300 s after the clock of this machine',
    );
  }
});

test('an audit warns of a fork until the pin covers it', async (t) => {
  const before = smallLog(3);
  const own = new SmallLog(`${before.origin}/2`);
  own.leaves.push(...before.leaves.slice(0, 3));
  own.act('LOG_FORKED', { origin: own.origin, previous: before.checkpoint() });
  own.addKeys();
  const { audit, pin } = await auditor(t, own);
  assertWarns(
    await audit('--pin', pin),
    'leaf 3 says that the log was forked and continues as "log.example/artworks/2", after 4 leaves of ' +
      'log.example/artworks: ask its operator why',
  );
  assertGood(await audit('--pin', pin));
});

test('a log with another name than its last fork announces contradicts itself', async (t) => {
  const own = smallLog(3);
  own.act('LOG_FORKED', { origin: `${own.origin}/2`, previous: '' });
  own.addKeys();
  assertRejected(
    await audited(t, own),
    7,
    /checkpoint is of the log log\.example\/artworks, and leaf 4 says that it continues as "log\.example\/artworks\/2"/,
  );
});

test('an audit warns of an extension line of the checkpoint', async (t) => {
  const own = smallLog(3).addKeys();
  const text = `${own.checkpoint().split('\n\n')[0]}\nhealth good\n`;
  const note = `${text}\n${own.keys.map((key) => key.line(text)).join('')}`;
  const { audit } = await auditor(t, own, publicationOf(own).set('checkpoint', Buffer.from(note)));
  assertWarns(
    await audit(),
    'the checkpoint has the extension line "health good", which is not checked here',
  );
});

test('--number prints all records of a filing, and fails with 5 if there is none', async (t) => {
  const own = smallLog(300).addKeys();
  own.record(transferAt(begunS + 400, 'AS-2026-000007', 2));
  own.record(transferAt(begunS + 401, 'AS-2026-000008', 2));
  own.record(transferAt(begunS + 402, 'AS-2026-000007', 3));
  const { audit, pin } = await auditor(t, own);
  assertGood(await audit('--pin', pin));
  const found = await audit('--pin', pin, '--number', 'AS-2026-000007');
  assertGood(found);
  assert.deepEqual(found.printed.slice(-4), [
    'records of AS-2026-000007:',
    '  leaf 7, 2026-11-21T01:15:07Z: FILING, sequence 1',
    '  leaf 302, 2026-11-21T01:21:40Z: TRANSFER, sequence 2',
    '  leaf 304, 2026-11-21T01:21:42Z: TRANSFER, sequence 3',
  ]);
  const { records } = JSON.parse((await audit('--number', 'AS-2026-000008', '--json')).printed.join());
  assert.deepEqual(records, [
    { leaf: 8, kind: 'FILING', sequence: 1, time: '2026-11-21T01:15:08Z' },
    { leaf: 303, kind: 'TRANSFER', sequence: 2, time: '2026-11-21T01:21:41Z' },
  ]);
  assertRejected(await audit('--number', 'AS-2026-000301'), 5, /the log has no record of AS-2026-000301$/);
});

test('--full reads all leaves again, and finds changes since the earlier audit', async (t) => {
  const own = smallLog(300).addKeys();
  const { audit, pin, publish, publication } = await auditor(t, own);
  assertGood(await audit('--pin', pin));
  const lying = new SmallLog(own.origin, own.keys);
  lying.leaves.push(...own.leaves);
  lying.leaves.splice(10, 1, commit(filingAt(begunS + 10, 10)).data);
  const changed = publicationOf(lying).get('tile/entries/000') ?? assert.fail();
  publish();
  publication.set('tile/entries/000', changed);
  assertGood(await audit('--pin', pin));
  assertRejected(await audit('--pin', pin, '--full'), 4, /leaf 10 of the log does not match its tile/);
});
