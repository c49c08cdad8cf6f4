import assert from 'node:assert/strict';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { begunS, type SmallLog } from '../evidence/verifier/small-log.ts';
import { type Publication, publicationOf, servePublication } from '../evidence/verifier/small-publication.ts';
import { type ArtsealResult, runHere } from '../support/artseal.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

/** The time of audits in tests, Unix seconds: sixty days after the small log began. */
export const auditedAtS = begunS + 60 * 86_400;

/** A published log with `artseal log audit` for it, and a file for its pin. */
export async function auditor(t: TestContext, log: SmallLog, publication: Publication = publicationOf(log)) {
  t.mock.timers.reset();
  t.mock.timers.enable({ apis: ['Date'], now: auditedAtS * 1000 });
  const served = await servePublication(t, publication);
  const pin = join(temporaryFolder(t), 'pin');
  return {
    ...served,
    publication,
    pin,
    /** Replaces the published files with those of the log as it is now, or of another one. */
    publish: (now: Publication = publicationOf(log)) => {
      publication.clear();
      for (const [path, bytes] of now) publication.set(path, bytes);
    },
    audit: (...words: readonly string[]) =>
      runHere(['log', 'audit', served.url, ...log.keyWords, ...words], {}),
  };
}

/** Audits a published log with these arguments. */
export async function audited(t: TestContext, log: SmallLog, ...words: readonly string[]) {
  return (await auditor(t, log)).audit(...words);
}

/** Asserts that the command succeeded with this warning alone. */
export function assertWarns({ code, errors }: ArtsealResult, warning: string): void {
  assert.deepEqual([code, errors], [0, [`warning: ${warning}`]]);
}

/** Asserts that the command found nothing, not even a warning. */
export function assertGood({ code, errors }: ArtsealResult): void {
  assert.deepEqual([code, errors], [0, []]);
}

/** Asserts that the command printed only an error. */
export function assertRejected(
  { code, printed, errors }: ArtsealResult,
  exitCode: number,
  error: RegExp,
): void {
  assert.deepEqual([code, printed], [exitCode, []], errors.join('\n'));
  assert.match(errors.join('\n'), error);
}
