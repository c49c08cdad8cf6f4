import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
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

test('verify names the witnesses that cosigned, and when', async () => {
  const { code, printed } = await verify(cosigned, '--witness', one.vkey, '--witness', two.vkey);
  assert.equal(code, 0);
  assert.ok(printed.includes(`cosigned by ${one.vkey} at 2026-11-21T02:15:00Z`), printed.join('\n'));
  const json = await verify(cosigned, '--witness', one.vkey, '--json');
  const { cosignedBy } = JSON.parse(json.printed[0] ?? '');
  assert.deepEqual(cosignedBy, [{ witness: one.vkey, time: '2026-11-21T02:15:00Z' }]);
});

test('verify fails with 6 if too few of the given witnesses cosigned', async () => {
  const bothGiven = ['--witness', one.vkey, '--witness', two.vkey];
  const { code, errors } = await verify(cosigned, ...bothGiven, '--witnesses-required', '2');
  assert.equal(code, 6);
  assert.match(errors[0] ?? '', /NOT VERIFIED \(BAD_SIGNATURE\): .*cosigned by 1 of the given witnesses/);
  assert.equal((await verify(plain, ...bothGiven)).code, 6);
  assert.equal((await verify(plain, ...bothGiven, '--witnesses-required', '0')).code, 0);
  const forged = { ...plain, proof: plain.proof + one.cosign('another text\n', cosignedAtS) };
  assert.equal((await verify(forged, ...bothGiven, '--witnesses-required', '0')).code, 6);
});

test('verify prints before what time the record existed, if a trusted authority is given', async () => {
  const open = await verify(stamped);
  assert.equal(open.code, 0);
  assert.match(open.printed.join('\n'), /^has a time stamp, which was not verified: give --tsa-ca/m);
  const { code, printed } = await verify(stamped, '--tsa-ca', authority.caFile);
  assert.equal(code, 0);
  const message = /^existed before (\S+) according to CN=authority of the test$/m.exec(printed.join('\n'));
  assert.ok(Math.abs(Date.parse(message?.[1] ?? '') - Date.now()) < 3_600_000, printed.join('\n'));
  const { timeStamp } = JSON.parse(
    (await verify(stamped, '--tsa-ca', authority.caFile, '--json')).printed[0] ?? '',
  );
  assert.deepEqual(timeStamp, {
    isChecked: true,
    existedBefore: message?.[1],
    authority: 'CN=authority of the test',
  });
});

test('verify fails with 6 if the time stamp is wrong or missing, and pins nothing', async () => {
  const { certificateFile } = makeSelfSigned(folder);
  const moved = { ...stamped, timeStamp: { proof: log.proof(3), token } };
  const pin = join(folder, 'pin');
  const published = writePublication(join(folder, 'log'), publicationOf(log));
  const cases: readonly (readonly [SmallBundle, string, RegExp])[] = [
    [stamped, certificateFile, /the time stamp is not valid: Validation of signer's certificate failed/],
    [moved, authority.caFile, /the time stamp is not valid: it is over something else/],
    [cosigned, authority.caFile, /has no time stamp/],
  ];
  for (const [bundle, file, expected] of cases) {
    const { code, errors } = await verify(bundle, '--tsa-ca', file, '--pin', pin, '--log', published);
    assert.equal(code, 6);
    assert.match(errors[0] ?? '', expected);
  }
  assert.throws(() => readFileSync(pin), { code: 'ENOENT' });
});

test('verify rejects wrong arguments', async () => {
  const [vkey = ''] = log.keys.map((key) => key.vkey);
  const text = join(folder, 'text');
  writeFileSync(text, 'no certificate');
  const wrong: readonly (readonly [readonly string[], RegExp])[] = [
    [['--witness', vkey], /cannot use --witness .*: it is a key of a log, not of a witness/],
    [['--witness', 'key'], /cannot use --witness key/],
    [['--witnesses-required', '1'], /needs --witness/],
    [['--witness', one.vkey, '--witnesses-required', '2'], /whole number from 0 to 1/],
    [['--witness', one.vkey, '--witness', one.vkey, '--witnesses-required', '2'], /whole number from 0 to 1/],
    [
      ['--witness', one.vkey, '--witness', alias.vkey, '--witnesses-required', '2'],
      /whole number from 0 to 1/,
    ],
    [['--tsa-ca', text], /cannot use --tsa-ca .*no certificate in PEM/],
  ];
  for (const [words, expected] of wrong) {
    const { code, errors } = await verify(stamped, ...words);
    assert.equal(code, 2, words.join(' '));
    assert.match(errors.join('\n'), expected);
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
  const verifyOld = await stampedLongAgo(endedStampS - 86_400);
  const { code, printed, errors } = await verifyOld();
  assert.equal(code, 0, errors.join('\n'));
  assert.deepEqual(printed.slice(-2), [
    'existed before 2020-06-01T00:00:01Z according to CN=authority of the test',
    'note: the time stamp relies on a certificate that expired 2021-01-01T00:00:00Z, after the stamp was made',
  ]);
  const { timeStamp } = JSON.parse((await verifyOld('--json')).printed.join());
  assert.equal(timeStamp.certificateEnded, '2021-01-01T00:00:00Z');
  // While the certificates are valid there is no note.
  const { printed: now } = await verify(stamped, '--tsa-ca', authority.caFile);
  assert.doesNotMatch(now.join('\n'), /note:/);
});

test('verify fails with 7 if the leaf is dated after the time stamp that covers it', async () => {
  const dayS = 86_400;
  for (const [aheadS, code] of [
    [301, 0],
    [302, 7],
    [20 * dayS, 7],
    [400 * dayS, 7],
  ] as const) {
    const found = await (await stampedLongAgo(endedStampS + aheadS))();
    assert.equal(found.code, code, `${aheadS}: ${found.errors.join()}`);
    if (code === 7)
      assert.match(found.errors.join(), /FORKED.*leaf is dated .*, after the time stamp of CN=auth/);
  }
});

test('verify fails with 7 if the leaf is dated after a cosignature that covers it', async () => {
  const late = new SmallLog();
  const bundle = late.bundle(late.record(filingAt(cosignedAtS + 20 * 86_400)));
  const file = join(folder, 'late.json');
  writeFileSync(
    file,
    JSON.stringify({
      ...bundle,
      proof: bundle.proof + one.cosign(checkpointTextOf(bundle.proof), cosignedAtS),
    }),
  );
  const words = ['verify', file, ...late.keyWords];
  assert.equal((await runHere(words, {})).code, 0);
  const { code, errors } = await runHere([...words, '--witness', one.vkey], {});
  assert.equal(code, 7);
  assert.match(errors.join(), /FORKED.*after the cosignature of one\.example\/w that covers it/);
});
