import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { begunS, filingAt, SmallLog, smallLog } from '../evidence/verifier/small-log.ts';
import { publicationOf } from '../evidence/verifier/small-publication.ts';
import { noteKey, witnessKey } from '../support/note-keys.ts';
import { assertGood, assertRejected, audited, auditedAtS, auditor } from './auditor.ts';

/** Audits with keys, witnesses, time stamps and a maximum age. */

const origin = 'log.example/artworks';
const dayS = 86_400;

/** A log of three filings whose checkpoint these keys sign, with these log events. */
function keyedLog(keys: SmallLog['keys'], events: (log: SmallLog) => void): SmallLog {
  const log = new SmallLog(origin, keys);
  log.act('LOG_BEGUN', { adopted: 0 }, begunS);
  for (const place of [1, 2, 3]) log.record(filingAt(begunS + place, place));
  events(log);
  return log;
}

const [old, next] = [noteKey(origin), noteKey(origin)];
const add = (log: SmallLog, { vkey }: { vkey: string }) => log.act('KEY_ADDED', { vkey });
const end = (log: SmallLog, { vkey }: { vkey: string }) => log.act('KEY_RETIRED', { vkey });
const fork = (log: SmallLog) => log.act('LOG_FORKED', { origin, previous: '' });

/** The signers, the log events about keys, and the error if there is one. */
const lifetimes: Readonly<
  Record<string, readonly [keys: SmallLog['keys'], events: (log: SmallLog) => void, fault?: RegExp]>
> = {
  'a key that was added': [[old], (log) => add(log, old)],
  'a key that was never added': [[old], (log) => add(log, next), /according to the log: .* \(never added\)$/],
  'a retired key': [
    [old],
    (log) => [add(log, old), add(log, next), end(log, old)],
    /checkpoint of 7 leaves is signed by no given key that is active according to the log: .* \(retired by leaf 6\)$/,
  ],
  'a retired key and its successor': [[old, next], (log) => [add(log, old), add(log, next), end(log, old)]],
  'a key from before a fork': [
    [old],
    (log) => [add(log, old), fork(log), add(log, next)],
    /retired by leaf 5/,
  ],
  'a key that was added after a fork': [[next], (log) => [add(log, old), fork(log), add(log, next)]],
};
for (const [name, [keys, events, fault]] of Object.entries(lifetimes)) {
  test(`a checkpoint that is signed by ${name} is ${fault === undefined ? 'valid' : 'rejected with 6'}`, async (t) => {
    const { audit } = await auditor(t, keyedLog(keys, events));
    const found = await audit();
    if (fault === undefined) assert.equal(found.code, 0, found.errors.join());
    else assertRejected(found, 6, fault);
  });
}

test('a later audit remembers which keys were retired', async (t) => {
  const own = keyedLog([old, next], (log) => [add(log, old), add(log, next), end(log, old)]);
  const { audit, pin, publish } = await auditor(t, own);
  assertGood(await audit('--pin', pin));
  own.keys.pop();
  own.record(filingAt(begunS + 9, 4));
  publish();
  assertRejected(await audit('--pin', pin), 6, /retired by leaf 6/);
});

test('an event that names no key is a contradiction', async (t) => {
  const own = keyedLog([old], (log) => log.act('KEY_ADDED', { key: old.vkey }));
  assertRejected(await audited(t, own), 7, /leaf 4 of the log does not name a key/);
});

const [one, two] = [witnessKey('one.example/w'), witnessKey('two.example/w')];

/** An auditor of a log whose checkpoint has these additional lines. */
async function cosignedAuditor(t: TestContext, log: SmallLog, ...lines: readonly string[]) {
  const files = publicationOf(log);
  const note = Buffer.concat([files.get('checkpoint') ?? assert.fail(), Buffer.from(lines.join(''))]);
  return auditor(t, log, files.set('checkpoint', note));
}

const log = smallLog(5).addKeys();
const text = log.checkpoint().split('\n\n')[0]?.concat('\n') ?? '';

test('an audit names the witnesses that cosigned, and fails with 6 if they are too few', async (t) => {
  const { audit } = await cosignedAuditor(t, log, one.cosign(text, begunS + 60));
  const given = ['--witness', one.vkey, '--witness', two.vkey];
  const found = await audit(...given);
  assertGood(found);
  assert.ok(
    found.printed.includes(`cosigned by ${one.vkey} at 2026-11-21T01:16:00Z`),
    found.printed.join('\n'),
  );
  assertRejected(
    await audit(...given, '--witnesses-required', '2'),
    6,
    /cosigned by 1 of the given witnesses .*2 are required/,
  );
});

test('an audit fails with 7 if leaves are dated after a cosignature, unless the clock was accepted since', async (t) => {
  for (const aheadS of [20 * dayS, 400 * dayS]) {
    const ahead = smallLog(5).addKeys();
    ahead.record(filingAt(begunS + aheadS, aheadS > 100 * dayS ? 1 : 6));
    const cosign = () => one.cosign(`${ahead.checkpoint().split('\n\n')[0]}\n`, begunS + 60);
    const { audit } = await cosignedAuditor(t, ahead, cosign());
    assertRejected(
      await audit('--witness', one.vkey),
      7,
      /leaf 7 of the log is dated 202.*, after the cosignature of one\.example\/w/,
    );
    ahead.act('CLOCK_ACCEPTED', { timeS: begunS + 30 }, begunS + 30);
    const { audit: auditAgain } = await cosignedAuditor(t, ahead, cosign());
    assert.equal((await auditAgain('--witness', one.vkey)).code, 0);
  }
});

test('an audit fails with 8 if nothing shows that the checkpoint is new', async (t) => {
  const { audit } = await auditor(t, log);
  const ageS = auditedAtS - log.newestS;
  const hours = (s: number) => `${Math.floor(s / 3600)}h`;
  assertGood(await audit('--max-age', hours(ageS + 3600)));
  assertRejected(
    await audit('--max-age', hours(ageS)),
    8,
    /NOT VERIFIED \(TOO_OLD\): nothing later than 2026-11-21T01:15:05Z shows the age of the checkpoint of 7 leaves/,
  );
  const json = await audit('--max-age', '1d', '--json');
  assert.deepEqual([json.code, JSON.parse(json.printed.join()).kind], [8, 'TOO_OLD']);
  // The log has not grown, and a witness saw it an hour ago.
  const { audit: auditCosigned } = await cosignedAuditor(t, log, one.cosign(text, auditedAtS - 3600));
  assertGood(await auditCosigned('--max-age', '2h', '--witness', one.vkey));
  assertRejected(
    await auditCosigned('--max-age', '59m', '--witness', one.vkey),
    8,
    /nothing later than 2027/,
  );
});

test('a leaf from the future does not show that the checkpoint is new', async (t) => {
  const ahead = smallLog(5).addKeys();
  ahead.record(filingAt(auditedAtS + dayS, 1));
  assertRejected(await audited(t, ahead, '--max-age', '1d'), 8, /^NOT VERIFIED \(TOO_OLD\): nothing shows/);
});
