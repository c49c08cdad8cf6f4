import assert from 'node:assert/strict';
import { readVerifierKey, verifyBundle } from '../../../src/evidence/verifier/index.ts';

/**
 * Verifies a bundle with one key of its log. Returns its record and leaf, parsed, and the size of the tree. Throws
 * AssertionError if it is not proven.
 */
export function proven(bundle: Readonly<Record<string, unknown>>, vkey: string) {
  const verdict = verifyBundle(JSON.stringify(bundle), { keys: [readVerifierKey(vkey)] });
  assert.ok(verdict.isProven, JSON.stringify(verdict));
  const { index, checkpoint, record } = verdict.proven;
  const leaf = JSON.parse(String(bundle.leaf));
  return { record: Object.fromEntries(record.members), leaf, index, size: checkpoint.size };
}
