import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { tokenOver } from '../evidence/verifier/attesting.ts';
import { filingAt, SmallLog, smallLog } from '../evidence/verifier/small-log.ts';
import { publicationOf } from '../evidence/verifier/small-publication.ts';
import { fileScope } from '../support/file-scope.ts';
import { checkpointTextOf } from '../support/note-keys.ts';
import { endedStampS, startTimeStampAuthority } from '../support/time-stamp-authority.ts';
import { assertGood, assertRejected, auditor } from './auditor.ts';

/** Audits with time stamps of openssl. */

const dayS = 86_400;

const authority = await startTimeStampAuthority(fileScope, { hasEnded: true });

/** A log of filings in the years of the expired authority, and the bundle of record 3 with a stamp of `stampedSize` leaves. */
async function stampedLog(fromS: number, stampedSize: number) {
  const stamped = smallLog(9, fromS).addKeys();
  const proof = stamped.proof(3, stampedSize);
  const token = await tokenOver(checkpointTextOf(proof), authority);
  return { stamped, bundle: { ...stamped.bundle(3), timeStamp: { proof, token } } };
}

/** Arguments that name a bundle with a time stamp, in a file beside the pin. */
function stampWords(pin: string, bundle: unknown): readonly string[] {
  const file = join(dirname(pin), 'bundle.json');
  writeFileSync(file, JSON.stringify(bundle));
  return ['--stamped', file, '--tsa-ca', authority.caFile];
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
  const token = await tokenOver(checkpointTextOf(proof), authority);
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
