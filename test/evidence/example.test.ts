import assert from 'node:assert/strict';
import { test } from 'node:test';
import { leafHash } from '../../src/domain/merkle.ts';
import { codeBlocks, documentText } from '../support/documents.ts';
import { exampleBundle, exampleKey, exampleSalted } from '../support/evidence-example.ts';

test('the worked example of docs/evidence.md follows from its records, salts and key', () => {
  const document = documentText('docs/evidence.md');
  const [example = ''] = codeBlocks(document, 'json');
  assert.deepEqual(JSON.parse(example), exampleSalted());
  assert.ok(document.includes(`\n    ${exampleKey.vkey}\n`));
  for (const index of [0, 1, 3, 4]) {
    const { leaf } = index === 3 ? exampleSalted(3) : exampleBundle(index);
    const digest = Buffer.from(leafHash(leaf)).toString('hex');
    assert.ok(document.includes(`\n    ${index}  ${leaf}\n       ${digest}\n`), `entry ${index}`);
  }
});
