import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createContents, noContents } from '../../../src/evidence/verifier/contents.ts';
import { readLeaf } from '../../../src/evidence/verifier/record.ts';
import { actAt, begunS } from './small-log.ts';

test('a log may have any number of erasures, and later events that allow an exception are kept', () => {
  const state = noContents();
  const contents = createContents(state, 'log.example');
  let acts = 0;
  const add = (kind: string, detail: Record<string, string | number>) => {
    acts += 1;
    contents.add(readLeaf(actAt(kind, begunS, acts, detail), 'the leaf'));
  };
  add('LOG_BEGUN', { adopted: 0 });
  for (let erased = 0; erased < 10_100; erased += 1) add('RECORDS_ERASED', { before: 1, records: 500 });
  add('NUMBERS_SKIPPED', { after: 0, through: 5, year: 2026 });
  contents.finish();
  const { logEvents, logEventCount } = state;
  assert.equal(logEventCount, 10_102);
  assert.equal(logEvents.length, 10_001);
  assert.deepEqual([logEvents.at(0)?.event, logEvents.at(-1)?.event], ['LOG_BEGUN', 'NUMBERS_SKIPPED']);
});
