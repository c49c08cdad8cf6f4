import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { projectFolder } from '../support/artseal-command.ts';
import { fileArtwork, getEvidence } from '../support/calls.ts';
import { fileScope } from '../support/file-scope.ts';
import { buildGoProgram } from '../support/go-program.ts';
import { startService } from '../support/service.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

/** The output of the program for a claim, as its `claim` has it: `good` or the fault, and its exit code. */
function checkByGo(program: string, claim: object): [said: string, code: number | null] {
  const { stdout, status } = spawnSync(program, ['check'], {
    input: JSON.stringify(claim),
    encoding: 'utf8',
  });
  return [stdout.trim(), status];
}

const { program, skip } = buildGoProgram(temporaryFolder(fileScope), '.');

test('golang.org/x/mod/sumdb/{tlog,note} print the vectors that are committed', { skip }, () => {
  const { stdout } = spawnSync(program, { encoding: 'utf8' });
  assert.equal(
    stdout,
    readFileSync(join(projectFolder, 'test', 'testdata', 'transparency-log.json'), 'utf8'),
  );
});

test('they verify the evidence of a registry', { skip }, async (t) => {
  const service = await startService(t, { env: { ARTSEAL_TLOG_ORIGIN: 'registry.example/log' } });
  const platform = await service.platform();
  const filed = await fileArtwork(service, platform);
  const { leaf, proof } = (await getEvidence(service, platform, filed.json.filingNo)).json;
  const [head = '', ...note] = String(proof).split('\n\n');
  const [, indexLine = '', ...hashes] = head.split('\n');
  const vkey = (await (await fetch(`${service.publicUrl}/log/vkey`)).text()).trim();
  const claim = {
    ...{ vkeys: [vkey], note: note.join('\n\n'), leaf, index: Number(indexLine.replace('index ', '')) },
    path: hashes.map((hash) => Buffer.from(hash, 'base64').toString('hex')),
  };
  assert.deepEqual(checkByGo(program, claim), ['good', 0]);
  const changed = { ...claim, leaf: leaf.replace('FILING', 'FILED') };
  assert.deepEqual(checkByGo(program, changed), ['invalid transparency proof', 1]);
});
