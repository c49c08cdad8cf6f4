import assert from 'node:assert/strict';
import { test } from 'node:test';
import { csvLine } from '../../src/cli/platform.ts';

test('numbers are bare, texts are quoted, and quotes in them are doubled', () => {
  assert.equal(csvLine(['Gallery One', 812, 'a, "b"; c']), '"Gallery One",812,"a, ""b""; c"');
  assert.equal(csvLine(['', 0]), '"",0');
});

for (const text of [
  '=1+1',
  '+1',
  '-1',
  '@SUM(A1)',
  '=cmd|"/c calc"!A1',
  ' =1+1',
  '\u3000=1+1',
  '\u00a0@SUM(A1)',
  '＝1+1',
  '＋1',
  '－1',
  '＠SUM(A1)',
]) {
  test(`a value that a spreadsheet would execute becomes text: ${text}`, () => {
    assert.equal(csvLine([text]), `"'${text.replaceAll('"', '""')}"`);
  });
}

test('what only contains such a character is as it was', () => {
  for (const text of ['a=1', '北京-画廊', '1+1', "'=1"]) assert.equal(csvLine([text]), `"${text}"`);
});
