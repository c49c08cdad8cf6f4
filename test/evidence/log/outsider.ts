import assert from 'node:assert/strict';
import { readVerifierKey, verifyBundle } from '../../../src/evidence/verifier/index.ts';

/** What a bundle proves. */
export interface Proven {
  /** The record, parsed. */
  readonly record: Readonly<Record<string, unknown>>;
  /** The leaf, parsed. */
  readonly leaf: Readonly<Record<string, unknown>>;
  readonly index: number;
  /** Leaves of the tree. */
  readonly size: number;
}

/** Verifies a bundle with one key of its log. Throws AssertionError if it is not proven. */
export function proven(bundle: Readonly<Record<string, unknown>>, vkey: string): Proven {
  const verdict = verifyBundle(JSON.stringify(bundle), { keys: [readVerifierKey(vkey)] });
  assert.ok(verdict.isProven, JSON.stringify(verdict));
  const { index, checkpoint } = verdict.proven;
  const [record, leaf] = [bundle.record, bundle.leaf].map((text) => JSON.parse(String(text)));
  return { record, leaf, index, size: checkpoint.size };
}
