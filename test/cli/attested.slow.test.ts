import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { existsSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { cosignedAtS, tokenOver } from '../evidence/verifier/attesting.ts';
import { filingAt, type SmallBundle, SmallLog, smallLog } from '../evidence/verifier/small-log.ts';
import { publicationOf, writePublication } from '../evidence/verifier/small-publication.ts';
import { runHere } from '../support/artseal.ts';
import { makeSelfSigned } from '../support/certificates.ts';
import { fileScope } from '../support/file-scope.ts';
import { checkpointTextOf, witnessKey } from '../support/note-keys.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { endedStampS, startTimeStampAuthority } from '../support/time-stamp-authority.ts';
import { assertGood, assertRejected, auditor } from './auditor.ts';

const dayS = 86_400;
const folder = temporaryFolder(fileScope);
const authority = await startTimeStampAuthority(fileScope);
const ended = await startTimeStampAuthority(fileScope, { hasEnded: true });
// Before the clock of the machine, by which the authority stamps.
const log = smallLog(5, Date.UTC(2025, 0, 1) / 1000);
const plain = log.bundle(3);
const seed = randomBytes(32);
const [one, two] = [witnessKey('one.example/w', seed), witnessKey('two.example/w')];
/** The same key under another name. */
const alias = witnessKey('alias.example/w', seed);
const cosigned = { ...plain, proof: plain.proof + one.cosign(checkpointTextOf(plain.proof), cosignedAtS) };
const stampedProof = log.proof(3, 5);
const token = await tokenOver(checkpointTextOf(stampedProof), authority);
const stamped = { ...cosigned, timeStamp: { proof: stampedProof, token } };

/** Runs `artseal verify` on a bundle. */
function verify(bundle: SmallBundle, ...words: readonly string[]) {
  const file = join(folder, 'bundle.json');
  writeFileSync(file, JSON.stringify(bundle));
  return runHere(['verify', file, ...log.keyWords, ...words], {});
}

const bothWitnesses = ['--witness', one.vkey, '--witness', two.vkey];

test('verify names the witnesses that cosigned, and when, and fails with 6 if they are too few', async () => {
  const { code, printed } = await verify(cosigned, ...bothWitnesses);
  assert.equal(code, 0);
  assert.ok(printed.includes(`cosigned by ${one.vkey} at 2026-11-21T02:15:00Z`), printed.join('\n'));
  const json = await verify(cosigned, ...bothWitnesses, '--json');
  const { cosignedBy } = JSON.parse(json.printed[0] ?? '');
  assert.deepEqual(cosignedBy, [{ witness: one.vkey, time: '2026-11-21T02:15:00Z' }]);
  assert.equal((await verify(plain, ...bothWitnesses)).code, 6);
  assert.equal((await verify(plain, ...bothWitnesses, '--witnesses-required', '0')).code, 0);
});

test('verify prints before what time the record existed, if a trusted authority is given', async () => {
  const open = await verify(stamped);
  assert.equal(open.code, 0);
  assert.match(open.printed.join('\n'), /^has a time stamp, which was not verified: give --tsa-ca/m);
  const { code, printed } = await verify(stamped, '--tsa-ca', authority.caFile);
  assert.equal(code, 0);
  const message = /^existed before (\S+) according to CN=authority of the test$/m.exec(printed.join('\n'));
  assert.ok(Math.abs(Date.parse(message?.[1] ?? '') - Date.now()) < 3_600_000, printed.join('\n'));
  // While the certificates are valid there is no note.
  assert.doesNotMatch(printed.join('\n'), /note:/);
  const json = await verify(stamped, '--tsa-ca', authority.caFile, '--json');
  const { timeStamp } = JSON.parse(json.printed[0] ?? '');
  const expected = { existedBefore: message?.[1], authority: 'CN=authority of the test' };
  assert.deepEqual(timeStamp, { isChecked: true, ...expected });
});

test('verify fails with 6 if the time stamp is wrong or missing, and pins nothing', async () => {
  const { certificateFile } = makeSelfSigned(folder);
  const pin = join(folder, 'pin');
  const published = writePublication(join(folder, 'log'), publicationOf(log));
  for (const [bundle, file, expected] of [
    [stamped, certificateFile, /the time stamp is not valid: Validation of signer's certificate failed/],
    [cosigned, authority.caFile, /has no time stamp/],
  ] as const) {
    assertRejected(await verify(bundle, '--tsa-ca', file, '--pin', pin, '--log', published), 6, expected);
  }
  assert.ok(!existsSync(pin));
});

test('verify rejects wrong arguments', async () => {
  const [vkey = ''] = log.keys.map((key) => key.vkey);
  const text = join(folder, 'text');
  writeFileSync(text, 'no certificate');
  const tooMany = /whole number from 0 to 1/;
  for (const [words, expected] of [
    [['--witness', vkey], /cannot use --witness .*: it is a key of a log, not of a witness/],
    [['--witness', 'key'], /cannot use --witness key/],
    [['--witness', one.vkey, '--witness', alias.vkey, '--witnesses-required', '2'], tooMany],
    [['--tsa-ca', text], /cannot use --tsa-ca .*no certificate in PEM/],
  ] as const) {
    assertRejected(await verify(stamped, ...words), 2, expected);
  }
  assert.equal((await verify(stamped, '--tsa-ca', join(folder, 'none'))).code, 1);
});

/** A log with one filing of that time, and its bundle with a stamp of the expired authority. */
async function stampedLongAgo(filedS: number) {
  const old = new SmallLog();
  const index = old.record(filingAt(filedS));
  const proof = old.proof(index);
  const bundle = {
    ...old.bundle(index),
    timeStamp: { proof, token: await tokenOver(checkpointTextOf(proof), ended) },
  };
  const file = join(folder, 'old.json');
  writeFileSync(file, JSON.stringify(bundle));
  return (...words: readonly string[]) =>
    runHere(['verify', file, ...old.keyWords, '--tsa-ca', ended.caFile, ...words], {});
}

test('verify accepts a time stamp whose certificate has expired since, and notes it', async () => {
  const verifyOld = await stampedLongAgo(endedStampS - dayS);
  const { code, printed, errors } = await verifyOld();
  assert.equal(code, 0, errors.join('\n'));
  assert.deepEqual(printed.slice(-2), [
    'existed before 2020-06-01T00:00:01Z according to CN=authority of the test',
    'note: the time stamp relies on a certificate that expired 2021-01-01T00:00:00Z, after the stamp was made',
  ]);
  const { timeStamp } = JSON.parse((await verifyOld('--json')).printed.join());
  assert.equal(timeStamp.certificateEnded, '2021-01-01T00:00:00Z');
});

test('verify fails with 7 if the leaf is dated after the time stamp that covers it', async () => {
  const tolerated = await (await stampedLongAgo(endedStampS + 301))();
  assert.equal(tolerated.code, 0, tolerated.errors.join());
  const late = await (await stampedLongAgo(endedStampS + 302))();
  assertRejected(late, 7, /FORKED.*leaf is dated .*, after the time stamp of CN=auth/);
});

/** A log of filings in the years of the expired authority, and the bundle of record 3 with a stamp of `stampedSize` leaves. */
async function stampedLog(fromS: number, stampedSize: number) {
  const stamped = smallLog(9, fromS).addKeys();
  const proof = stamped.proof(3, stampedSize);
  const token = await tokenOver(checkpointTextOf(proof), ended);
  return { stamped, bundle: { ...stamped.bundle(3), timeStamp: { proof, token } } };
}

/** Arguments that name a bundle with a time stamp, in a file beside the pin. */
function stampWords(pin: string, bundle: unknown): readonly string[] {
  const file = join(dirname(pin), 'bundle.json');
  writeFileSync(file, JSON.stringify(bundle));
  return ['--stamped', file, '--tsa-ca', ended.caFile];
}

test('an audit compares the log with a time stamp of an earlier tree', async (t) => {
  const { stamped, bundle } = await stampedLog(endedStampS - dayS, 7);
  const { audit, pin } = await auditor(t, stamped);
  const words = stampWords(pin, bundle);
  const found = await audit(...words);
  assertGood(found);
  const lines = found.printed.join('\n');
  assert.match(lines, /^the tree of 7 leaves existed before 2020-06-01T00:00:01Z according to CN=authority/m);
  assert.match(lines, /^note: the time stamp relies on a certificate that expired 2021-01-01T00:00:00Z/m);
  const { timeStamp } = JSON.parse((await audit(...words, '--json')).printed.join());
  assert.equal(timeStamp.existedBefore, '2020-06-01T00:00:01Z');
});

test('an audit fails with 7 if the log does not continue the stamped tree, or is dated after the stamp', async (t) => {
  const { stamped, bundle } = await stampedLog(endedStampS - dayS, 7);
  const rewritten = new SmallLog(stamped.origin, stamped.keys);
  rewritten.leaves.push(...stamped.leaves);
  rewritten.leaves.splice(5, 1);
  for (const place of [10, 11]) rewritten.record(filingAt(endedStampS, place));
  const { audit, pin, publish } = await auditor(t, rewritten);
  const words = stampWords(pin, bundle);
  assertRejected(await audit(...words), 7, /the first 7 leaves are not those of the time stamp/);
  publish(publicationOf(stamped, 6));
  assertRejected(await audit(...words), 7, /has 6 leaves, and had 11 in the checkpoint of the bundle/);

  // The record is older than the stamp; the last stamped leaf is not.
  const late = smallLog(3, endedStampS - dayS).addKeys();
  late.record(filingAt(endedStampS + 20 * dayS, 4));
  const proof = late.proof(3, 6);
  const token = await tokenOver(checkpointTextOf(proof), ended);
  const lateAuditor = await auditor(t, late);
  const lateWords = stampWords(lateAuditor.pin, { ...late.bundle(3), timeStamp: { proof, token } });
  assertRejected(
    await lateAuditor.audit(...lateWords),
    7,
    /leaf 5 of the log is dated 2020-06-21.*, after the time stamp of CN=authority/,
  );
});

test('an audit from a later pin than the time stamp reads the log again', async (t) => {
  const { stamped, bundle } = await stampedLog(endedStampS - dayS, 7);
  const { audit, pin, asked } = await auditor(t, stamped);
  assertGood(await audit('--pin', pin));
  asked.length = 0;
  const { code, printed } = await audit('--pin', pin, '--json', ...stampWords(pin, bundle));
  assert.deepEqual([code, JSON.parse(printed.join()).from], [0, 0]);
});

test('an audit continues from the last block that an interrupted audit verified', async (t) => {
  const own = smallLog(16_999).addKeys();
  const { audit, pin, faults, asked } = await auditor(t, own);
  faults.set('tile/entries/066.p/105', [410]);
  assertRejected(await audit('--pin', pin), 1, /tile\/entries\/066.p\/105 returned HTTP 410$/);
  asked.length = 0;
  const { code, printed } = await audit('--pin', pin, '--json');
  const found = JSON.parse(printed.join());
  assert.deepEqual([code, found.from, found.size], [0, 16_384, 17_001]);
  assert.ok(!asked.includes('tile/entries/063'), asked.join(' '));
  assert.deepEqual(found.years, [{ year: 2026, filings: 16_999, last: 16_999 }]);
});
