import assert from 'node:assert/strict';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { test } from 'node:test';
import {
  actAt,
  begunS,
  commit,
  filingAt,
  SmallLog,
  smallLog,
  transferAt,
} from '../evidence/verifier/small-log.ts';
import { type Publication, publicationOf } from '../evidence/verifier/small-publication.ts';
import { assertGood, assertRejected, audited, auditor } from './auditor.ts';

/** A log of 700 leaves: three bundles, and a full tile on each lower level. */
const log = smallLog(698).addKeys();

/** A copy of a log with the same keys and leaves, to be changed. */
function sameLog(of: SmallLog = log): SmallLog {
  const same = new SmallLog(of.origin, of.keys);
  same.leaves.push(...of.leaves);
  return same;
}

test('the audit of a good log prints its tree, its years and its signers, also as JSON', async (t) => {
  const { audit, asked, mostAtOnce } = await auditor(t, log);
  const { code, printed, errors } = await audit();
  assert.deepEqual([code, errors], [0, []]);
  assert.deepEqual(printed.slice(0, 3), [
    'VERIFIED: the 700 leaves of the log log.example/artworks are what it signed',
    `signed by ${log.keys[0]?.vkey}`,
    '2026: 698 filings, to number 698, 0 numbers skipped',
  ]);
  // It reads each file once, and a bounded number at a time.
  assert.deepEqual(asked.toSorted(), Array.from(publicationOf(log).keys()).toSorted());
  assert.ok(mostAtOnce() <= 16, `${mostAtOnce()} at once`);
  const found = JSON.parse((await audit('--json')).printed.join());
  assert.deepEqual([found.verified, found.size, found.from], [true, 700, 0]);
  assert.deepEqual(found.years, [{ year: 2026, filings: 698, last: 698 }]);
  assert.deepEqual(found.logEvents, [
    { leaf: 0, kind: 'LOG_BEGUN', time: '2026-11-21T01:15:00Z', detail: { adopted: 0 } },
    { leaf: 699, kind: 'KEY_ADDED', time: '2026-11-21T01:26:38Z', detail: { vkey: log.keys[0]?.vkey } },
  ]);
});

test('log events that allow exceptions are listed first', async (t) => {
  const own = smallLog(3);
  const at = begunS + 10;
  own.append(actAt('NUMBERS_SKIPPED', at, 2, { year: 2026, after: 3, through: 9 }));
  own.append(actAt('CLOCK_ACCEPTED', begunS - 99, 3, { timeS: begunS - 99 }));
  for (let added = 0; added < 60; added += 1) own.addKeys();
  const { printed } = await audited(t, own);
  assert.ok(printed.includes('log events: 1 LOG_BEGUN, 1 NUMBERS_SKIPPED, 1 CLOCK_ACCEPTED, 60 KEY_ADDED'));
  const events = printed.filter((line) => line.startsWith('  leaf '));
  assert.deepEqual(
    events.slice(0, 4).map((line) => / ([A-Z_]+) /.exec(line)?.[1]),
    ['LOG_BEGUN', 'NUMBERS_SKIPPED', 'CLOCK_ACCEPTED', 'KEY_ADDED'],
  );
  assert.equal(events.length, 53);
});

for (const size of [2, 255, 256, 257, 512, 513]) {
  test(`a log of ${size} leaves is audited`, async (t) => {
    const { audit } = await auditor(t, smallLog(size - 2).addKeys());
    assertGood(await audit());
  });
}

type Change = (files: Publication) => unknown;

/** Changes a file of a published log. */
const changing =
  (path: string, change: (bytes: Buffer) => Uint8Array): Change =>
  (files) =>
    files.set(path, change(Buffer.from(files.get(path) ?? assert.fail(path))));

const flipBit = (path: string, at: number) =>
  changing(path, (bytes) => bytes.fill(bytes.readUInt8(at) ^ 1, at, at + 1));
const cut = (path: string, bytes: number) => changing(path, (all) => all.subarray(0, -bytes));
const lastLeafBytes = 2 + Buffer.byteLength(log.leaves[699] ?? '');
/** A place in the commitment of leaf 10 in its bundle, where two bytes of length precede each leaf. */
const inCommitment = log.leaves
  .slice(0, 11)
  .map((data) => `..${data}`)
  .join('')
  .lastIndexOf('commitment');

/** Changes of one file of a published log, with the exit code and the error of an audit. */
const served: readonly (readonly [name: string, exitCode: number, error: RegExp, change: Change])[] = [
  [
    'a leaf that was changed',
    4,
    /leaf 10 of the log does not match its tile/,
    flipBit('tile/entries/000', inCommitment),
  ],
  [
    'a hash of a leaf that was changed',
    4,
    /leaf 0 of the log does not match its tile/,
    flipBit('tile/0/000', 5),
  ],
  ['a hash above the leaves that was changed', 4, /tile 0 of level 1/, flipBit('tile/1/000.p/2', 40)],
  [
    'a bundle without its last leaf',
    3,
    /has 187 leaves, not 188/,
    cut('tile/entries/002.p/188', lastLeafBytes),
  ],
  ['a bundle that ends within a leaf', 3, /ends within a leaf/, cut('tile/entries/000', 10)],
  ['a tile that is too short', 3, /bytes, which are not 188 hashes/, cut('tile/0/002.p/188', 10)],
  ['a missing tile', 3, /does not have tile\/0\/001, although/, (files) => files.delete('tile/0/001')],
  ['no checkpoint', 3, /there is no checkpoint: this is not/, (files) => files.delete('checkpoint')],
  [
    'a checkpoint that is none',
    3,
    /MALFORMED.*checkpoint/,
    changing('checkpoint', () => Buffer.from('good\n')),
  ],
  [
    ...(['a checkpoint of another log', 6, /BAD_SIGNATURE/] as const),
    changing('checkpoint', () => Buffer.from(smallLog(3).checkpoint())),
  ],
];

for (const [name, exitCode, error, change] of served) {
  test(`${name}: exit code ${exitCode}`, async (t) => {
    const publication = publicationOf(log);
    change(publication);
    assertRejected(await (await auditor(t, log, publication)).audit(), exitCode, error);
  });
}

/** Changes of a log that is then signed again, against an earlier pin. */
const rewritten: Readonly<Record<string, readonly [error: RegExp, change: (leaves: string[]) => void]>> = {
  'a changed leaf': [
    /two different trees of 700 leaves/,
    (leaves) => leaves.splice(10, 1, commit(filingAt(begunS + 10, 10)).data),
  ],
  'a dropped leaf': [/went back/, (leaves) => leaves.splice(699, 1)],
  'a changed leaf, and another at the end': [
    /the first 700 leaves are not those of the pin/,
    (leaves) => {
      leaves.splice(10, 1, commit(filingAt(begunS + 10, 10)).data);
      leaves.push(commit(filingAt(begunS + 700, 700)).data);
    },
  ],
};
for (const [name, [error, change]] of Object.entries(rewritten)) {
  test(`${name}, signed again, is a fork to an audit with a pin: exit code 7`, async (t) => {
    const { audit, pin, publish } = await auditor(t, log, publicationOf(log));
    assertGood(await audit('--pin', pin));
    const lying = sameLog();
    change(lying.leaves);
    publish(publicationOf(lying));
    assertRejected(await audit('--pin', pin), 7, error);
    assert.equal(readFileSync(pin, 'utf8'), log.checkpoint());
  });
}

test('leaves and tiles that agree with each other, but not with the signed tree, are a fork', async (t) => {
  const lying = sameLog();
  lying.leaves.splice(10, 1, commit(filingAt(begunS + 10, 10)).data);
  const publication = publicationOf(lying).set('checkpoint', Buffer.from(log.checkpoint()));
  assertRejected(
    await (await auditor(t, log, publication)).audit(),
    7,
    /do not make the tree that it signed/,
  );
});

/** Leaves after LOG_BEGUN and three filings that make a log wrong. */
const contents: Readonly<Record<string, readonly [error: RegExp, leaves: readonly string[]]>> = {
  'a gap of numbers': [/the numbers 4 to 5 of 2026 are missing/, [leaf(filingAt(begunS + 6, 6))]],
  'a gap that is only partly announced': [
    /the numbers 4 to 9 of 2026 are missing/,
    [skip(2026, 3, 8), leaf(filingAt(begunS + 10, 10))],
  ],
  'a number twice': [/has the number AS-2026-000002 for a second filing/, [leaf(filingAt(begunS + 4, 2))]],
  'a number after a higher one': [
    /AS-2026-000004, after a higher one/,
    [leaf(filingAt(begunS + 5, 5)), leaf(filingAt(begunS + 6, 4))],
  ],
  'a number that was announced as skipped': [
    /AS-2026-000005, which was skipped/,
    [skip(2026, 3, 8), leaf(filingAt(begunS + 5, 5))],
  ],
  'a skipped number that was assigned': [/skips number 3 of 2026, which was assigned/, [skip(2026, 2, 4)]],
  'the number 0': [/numbers begin with 1/, [leaf(filingAt(begunS + 4, 0))]],
  'a number of another year': [
    /in another year/,
    [leaf({ ...filingAt(begunS + 4, 1), number: 'AS-2036-000001' })],
  ],
  'a time that goes back': [
    /is from 2026-11-21T01:15:02Z, earlier than the leaf before it/,
    [leaf(filingAt(begunS + 2, 4))],
  ],
  'a transfer without a filing': [/not filed before it/, [leaf(transferAt(begunS + 4, 'AS-2026-000004', 2))]],
  'a transfer with a gap': [
    /is record 3 of AS-2026-000001, after record 1/,
    [leaf(transferAt(begunS + 4, 'AS-2026-000001', 3))],
  ],
  'a transfer twice': [
    /is record 2 of AS-2026-000001, after record 2/,
    [leaf(transferAt(begunS + 4, 'AS-2026-000001', 2)), leaf(transferAt(begunS + 5, 'AS-2026-000001', 2))],
  ],
  'a log event out of order': [
    /is log event 3, after log event 1/,
    [actAt('KEY_RETIRED', begunS + 4, 3, { vkey: 'a+b+c' })],
  ],
  'a second beginning': [/a second time/, [actAt('LOG_BEGUN', begunS + 4, 2, { adopted: 4 })]],
};

function leaf(record: Parameters<typeof commit>[0]): string {
  return commit(record).data;
}

function skip(year: number, after: number, through: number): string {
  return actAt('NUMBERS_SKIPPED', begunS + 4, 2, { year, after, through });
}

for (const [name, [error, leaves]] of Object.entries(contents)) {
  test(`${name}: exit code 7`, async (t) => {
    const own = smallLog(3);
    own.leaves.push(...leaves);
    assertRejected(await audited(t, own), 7, error);
  });
}

/** Leaves after LOG_BEGUN and three filings that are valid. */
const valid: Readonly<Record<string, readonly string[]>> = {
  'a gap that an earlier leaf announces': [skip(2026, 3, 5), leaf(filingAt(begunS + 6, 6))],
  'a gap that two later leaves announce': [
    leaf(filingAt(begunS + 4, 8)),
    actAt('NUMBERS_SKIPPED', begunS + 4, 2, { year: 2026, after: 3, through: 5 }),
    actAt('NUMBERS_SKIPPED', begunS + 4, 3, { year: 2026, after: 5, through: 7 }),
  ],
  'an accepted clock, after which times start earlier': [
    actAt('CLOCK_ACCEPTED', begunS - 100, 2, { timeS: begunS - 100 }),
    leaf(filingAt(begunS - 90, 4)),
  ],
  'transfers in a row': [2, 3, 4].map((sequence) => leaf(transferAt(begunS + 4, 'AS-2026-000003', sequence))),
  'a new year': [
    leaf(filingAt(Date.UTC(2027, 0, 3) / 1000, 1)),
    leaf(filingAt(Date.UTC(2027, 0, 3) / 1000, 2)),
  ],
  'an unknown log event': [actAt('MOON_SEEN', begunS + 4, 2, { phase: 'full' })],
};
for (const [name, leaves] of Object.entries(valid)) {
  test(`${name} is valid`, async (t) => {
    const own = smallLog(3);
    own.leaves.push(...leaves);
    own.addKeys();
    assertGood(await audited(t, own));
  });
}

test('records older than the log may have times in any order, and LOG_BEGUN counts them', async (t) => {
  const own = new SmallLog();
  for (const [place, at] of [100, 50, 70].entries()) own.record(filingAt(begunS + at, place + 1));
  own.record(transferAt(begunS + 60, 'AS-2026-000001', 2));
  const { audit, publish } = await auditor(t, own, new Map());
  publish();
  assertRejected(await audit(), 7, /no leaf of the log says that it was begun/);
  own.append(actAt('LOG_BEGUN', begunS + 100, 1, { adopted: 4 }));
  own.record(filingAt(begunS + 100, 4));
  own.addKeys();
  publish();
  assertGood(await audit());
  own.leaves.splice(3, 1);
  publish();
  assertRejected(await audit(), 7, /says that 4 records are from before/);
});

test('a malformed leaf, or one of another version, is rejected', async (t) => {
  for (const data of [
    '',
    '{}',
    '{"version":2}',
    ' '.repeat(10),
    leaf(filingAt(begunS + 4, 4)).replace('}', ' }'),
  ]) {
    const own = smallLog(3);
    own.append(data);
    assertRejected(await audited(t, own), 3, /leaf|version/);
  }
});

test('a later audit continues from the earlier one, and moves the pin', async (t) => {
  const own = smallLog(300).addKeys();
  const { audit, pin, publish, asked } = await auditor(t, own);
  assertGood(await audit('--pin', pin));
  for (let place = 301; place <= 600; place += 1) own.record(filingAt(begunS + place, place));
  own.record(transferAt(begunS + 700, 'AS-2026-000007', 2));
  publish();
  asked.length = 0;
  const { code, printed } = await audit('--pin', pin, '--json');
  const found = JSON.parse(printed.join());
  assert.deepEqual([code, found.from, found.size, found.transfers], [0, 302, 603, 1]);
  assert.deepEqual(found.years, [{ year: 2026, filings: 600, last: 600 }]);
  assert.ok(!asked.includes('tile/entries/000'), asked.join(' '));
  assert.equal(readFileSync(pin, 'utf8'), own.checkpoint());
  // The results of the earlier audit still count.
  own.record(transferAt(begunS + 701, 'AS-2026-000007', 2));
  publish();
  assertRejected(await audit('--pin', pin), 7, /is record 2 of AS-2026-000007, after record 2/);
});

test('if the state is damaged, the audit starts from the beginning', async (t) => {
  const { audit, pin, asked } = await auditor(t, log);
  assertGood(await audit('--pin', pin));
  const state = `${pin}.audit`;
  const bytes = readFileSync(state);
  for (const content of [Buffer.alloc(0), bytes.subarray(0, 100), Buffer.from('nonsense')]) {
    writeFileSync(state, content);
    asked.length = 0;
    assertGood(await audit('--pin', pin));
    assert.ok(asked.includes('tile/entries/000'));
  }
});

test('an audit does not continue from the state of another log or pin', async (t) => {
  const { audit, pin } = await auditor(t, log);
  assertGood(await audit('--pin', pin));
  const other = smallLog(800).addKeys();
  const { audit: auditOther, asked } = await auditor(t, other);
  // The pin is of the other log, the state of this one; both logs have the same name.
  writeFileSync(pin, other.checkpoint(500));
  assertGood(await auditOther('--pin', pin));
  assert.ok(asked.includes('tile/entries/000'));
});

test('without a pin the audit writes no file', async (t) => {
  const { audit, pin } = await auditor(t, log);
  assertGood(await audit());
  assert.deepEqual([existsSync(pin), existsSync(`${pin}.audit`)], [false, false]);
});

test('a missing partial tile is read from the full one', async (t) => {
  const own = smallLog(0).addKeys();
  for (let place = 1; place <= 698; place += 1) own.record(filingAt(begunS + place, place));
  // The checkpoint is older than the tiles: the log has grown, and keeps only full tiles.
  const files = publicationOf(own).set('checkpoint', Buffer.from(own.checkpoint(500)));
  const { audit, asked } = await auditor(
    t,
    own,
    files.set('tile/1/000.p/1', publicationOf(own, 500).get('tile/1/000.p/1') ?? assert.fail()),
  );
  assertGood(await audit());
  assert.ok(asked.includes('tile/entries/001.p/244') && asked.includes('tile/entries/001'));
});

test('a failed request is repeated a few times', async (t) => {
  const { audit, faults } = await auditor(t, log);
  faults.set('tile/0/001', ['end', 503]).set('checkpoint', [429]);
  assertGood(await audit());
  faults.set(
    'tile/entries/001',
    Array.from({ length: 5 }, () => 'end' as const),
  );
  assertRejected(await audit(), 1, /^artseal: http.*tile\/entries\/001 could not be fetched: /);
});

test('the audit follows no redirect, and reads no endless body', async (t) => {
  const { audit, faults, publication } = await auditor(t, log);
  faults.set('checkpoint', [302]);
  assertRejected(await audit(), 1, /HTTP 302, and redirects are not followed/);
  publication.set('checkpoint', Buffer.alloc(2 ** 20, 'a'));
  assertRejected(await audit(), 1, /is longer than 524288 bytes/);
});
