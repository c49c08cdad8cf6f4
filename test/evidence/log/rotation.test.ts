import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { isSignedBy } from '../../../src/evidence/log/agreement.ts';
import { runHere } from '../../support/artseal.ts';
import { createManualClock } from '../../support/clock.ts';
import { eventually } from '../../support/eventually.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { startWitness } from '../../support/witness-stand-in.ts';
import { startPublishing } from './publishing.ts';

/** The longest wait for something that has to happen. */
const timeoutMs = 60_000;

/** A service, and commands that run beside it. */
async function withCommands(t: TestContext, env: Record<string, string> = {}) {
  const service = await startPublishing(t, { clock: createManualClock(Date.now()), env });
  const { dataDir, publication, execute, clock } = service;
  const artseal = async (...words: string[]) => {
    const { code, printed, errors } = await runHere(words, { ARTSEAL_DATA_DIR: dataDir });
    assert.deepEqual([code, errors], [0, []]);
    return printed;
  };
  /** Advances the clock until exactly these keys sign. Returns the checkpoint that they signed. */
  const signedWith = (vkeys: readonly string[]) =>
    eventually(`signed by ${vkeys}`, timeoutMs, () => {
      clock.advance(1_000);
      const note = publication.current()?.note ?? '';
      const [, signatures = ''] = note.split('\n\n');
      return (
        signatures.trim().split('\n').length === vkeys.length &&
        vkeys.every((vkey) => isSignedBy(note, [vkey])) &&
        publication.current()
      );
    });
  const logEvents = async () => {
    const { size } = await execute({ kind: 'GetTree' });
    const leaves = await execute({ kind: 'ReadLeaves', index: 0, width: size });
    const found = leaves?.map((leaf) => JSON.parse(leaf)).filter(({ kind }) => kind.startsWith('KEY_'));
    return found?.map(({ kind, detail }) => [kind, detail]);
  };
  return { ...service, artseal, signedWith, logEvents };
}

test('a new key signs beside the old one, which ends after the overlap', async (t) => {
  const { publication, clock, artseal, signedWith, logEvents } = await withCommands(t);
  const [old = ''] = publication.verifierKeys();
  const [added = ''] = await artseal('evidence', 'rotate-key', '--overlap', '2h');
  await signedWith([old, added]);
  assert.deepEqual(publication.verifierKeys(), [added, old]);
  clock.advance(2 * 3_600_000);
  const { size } = await signedWith([added]);
  assert.deepEqual(publication.verifierKeys(), [added]);
  assert.deepEqual(await logEvents(), [
    ['KEY_ADDED', { vkey: old }],
    ['KEY_ADDED', { vkey: added }],
    ['KEY_RETIRED', { vkey: old }],
  ]);
  assert.equal(size, 4);
});

test('a witness can get a new key before it signs, and cosigns without a break', async (t) => {
  const witness = await startWitness(t, 'one.example/w');
  const witnessesFile = join(temporaryFolder(t), 'witnesses');
  writeFileSync(witnessesFile, `${witness.vkey} ${witness.url}\n`);
  const env = {
    ARTSEAL_TLOG_WITNESSES_FILE: witnessesFile,
    ARTSEAL_TLOG_WITNESSES_REQUIRED: '1',
    ARTSEAL_TLOG_ORIGIN: 'log.example/artseal',
  };
  const { publication, clock, artseal, logEvents, file } = await withCommands(t, env);
  const [old = ''] = publication.verifierKeys();
  witness.logs.add(old);
  /** Files, and advances the clock until the witness cosigned. Returns the keys that signed. */
  const signersOfNext = async () => {
    const leaf = await file();
    let looks = 0;
    const { note = '' } = await eventually('a checkpoint', timeoutMs, () => {
      // Slowly: the overlap is a minute, and the witness uses the clock of the machine.
      if (looks % 50 === 0) clock.advance(1_000);
      looks += 1;
      const current = publication.current();
      return (current?.size ?? 0) > leaf && current;
    });
    assert.ok(note.includes(`\n— ${witness.name} `));
    return [old, added].filter((vkey) => vkey !== '' && isSignedBy(note, [vkey]));
  };
  let added = '';
  assert.deepEqual(await signersOfNext(), [old]);

  const [rotated = ''] = await artseal(
    ...['evidence', 'rotate-key', '--signs-in', '2m', '--overlap', '1m', '--json'],
  );
  const { vkey, signsFrom } = JSON.parse(rotated);
  added = vkey;
  // The log announces the key, so that readers know it before it signs.
  assert.deepEqual(await signersOfNext(), [old]);
  assert.deepEqual(publication.verifierKeys(), [old]);
  assert.deepEqual(await logEvents(), [
    ['KEY_ADDED', { vkey: old }],
    ['KEY_ADDED', { vkey: added, from: Date.parse(signsFrom) / 1_000 }],
  ]);

  witness.logs.add(added);
  clock.advance(120_000);
  assert.deepEqual(await signersOfNext(), [old, added]);
  assert.deepEqual(publication.verifierKeys(), [added, old]);
  clock.advance(60_000);
  assert.deepEqual(await signersOfNext(), [added]);
  // It responds 403 to an unknown key.
  assert.ok(!witness.asked.some(({ status }) => status === 403));
});

test('without an overlap the old key no longer signs', async (t) => {
  const { publication, artseal, signedWith, dataDir, close } = await withCommands(t);
  const [old] = publication.verifierKeys();
  const [rotated = ''] = await artseal('evidence', 'rotate-key', '--overlap', '0s', '--json');
  const { vkey } = JSON.parse(rotated);
  assert.notEqual(vkey, old);
  const { size } = await signedWith([vkey]);
  assert.ok(size > 2);
  await close();
  // The file and the database agree under the new key alone.
  const again = await startPublishing(t, { dataDir });
  assert.deepEqual(again.publication.verifierKeys(), [vkey]);
});

test('before the log has a key, none can be printed or rotated', async (t) => {
  const env = { ARTSEAL_DATA_DIR: join(temporaryFolder(t), 'new') };
  assert.equal((await runHere(['init'], env)).code, 0);
  for (const word of ['vkey', 'rotate-key']) {
    const { code, errors } = await runHere(['evidence', word], env);
    assert.equal(code, 1);
    assert.match(
      errors.join('\n'),
      /^artseal: .*the evidence log has no key yet: the first artseal serve creates it/i,
    );
  }
});
