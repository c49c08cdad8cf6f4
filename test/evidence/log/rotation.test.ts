import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { isSignedBy } from '../../../src/evidence/log/agreement.ts';
import { newMasterKeyText } from '../../../src/keys/key-ring.ts';
import { runHere } from '../../support/artseal.ts';
import { createManualClock } from '../../support/clock.ts';
import { eventually } from '../../support/eventually.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { startWitness } from '../../support/witness-stand-in.ts';
import { signedBy, startPublishing } from './publishing.ts';

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
    return found?.map(({ kind, detail }) => [kind, detail.vkey]);
  };
  return { ...service, artseal, signedWith, logEvents };
}

test('a new key signs beside the old one, which ends after the overlap', async (t) => {
  const { publication, clock, artseal, signedWith, logEvents } = await withCommands(t);
  const [old = ''] = publication.verifierKeys();
  const [added = '', until] = await artseal(
    'evidence',
    'rotate-key',
    '--overlap',
    '2h',
    '--reason',
    'each year',
  );
  assert.match(until ?? '', /^The earlier keys sign until \d{4}-/);
  await signedWith([old, added]);
  assert.deepEqual(publication.verifierKeys(), [added, old]);
  assert.deepEqual(await artseal('evidence', 'vkey'), [added, old]);
  clock.advance(2 * 3_600_000);
  const { size } = await signedWith([added]);
  assert.deepEqual(publication.verifierKeys(), [added]);
  assert.deepEqual(await logEvents(), [
    ['KEY_ADDED', old],
    ['KEY_ADDED', added],
    ['KEY_RETIRED', old],
  ]);
  assert.equal(size, 4);
  const [act] = (await artseal('audit-log', '--json')).map((line) => JSON.parse(line));
  assert.deepEqual([act.action, act.subject, act.reason], ['evidence rotate-key', added, 'each year']);
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
  const { publication, clock, artseal, logEvents, file, execute } = await withCommands(t, env);
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

  const words = ['evidence', 'rotate-key', '--signs-in', '2m', '--overlap', '1m'];
  const rotated = await artseal(...words);
  added = rotated[0] ?? '';
  const [from = ''] = /\d{4}-\S+(?=:)/.exec(rotated[1] ?? '') ?? [];
  assert.match(rotated[1] ?? '', /^The new key signs from .*: give it to witnesses before\.$/);
  assert.deepEqual(await artseal('evidence', 'vkey'), [old, `${added} signs from ${from}`]);
  const keys = (await artseal('evidence', 'vkey', '--json')).map((line) => JSON.parse(line));
  const signsFromS = Date.parse(from) / 1_000;
  assert.deepEqual(
    keys.map((key) => [
      key.vkey,
      (Date.parse(key.signsFrom) - Date.parse(key.addedAt)) / 1_000,
      key.endsAt && Date.parse(key.endsAt) / 1_000,
    ]),
    [
      [old, 0, signsFromS + 60],
      [added, 120, null],
    ],
  );
  // The log announces the key, so that readers know it before it signs.
  assert.deepEqual(await signersOfNext(), [old]);
  assert.deepEqual(publication.verifierKeys(), [old]);
  assert.deepEqual(await logEvents(), [
    ['KEY_ADDED', old],
    ['KEY_ADDED', added],
  ]);
  const { size } = await execute({ kind: 'GetTree' });
  const leaves = (await execute({ kind: 'ReadLeaves', index: 0, width: size })) ?? [];
  const [announced] = leaves.map((leaf) => JSON.parse(leaf)).filter(({ detail }) => detail?.vkey === added);
  assert.deepEqual(announced.detail, { from: signsFromS, vkey: added });

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

test('a wrong overlap and too many keys are rejected', async (t) => {
  const { dataDir, artseal } = await withCommands(t);
  const env = { ARTSEAL_DATA_DIR: dataDir };
  for (const overlap of ['30', '1w', '367d', '-1d']) {
    const { code, errors } = await runHere(['evidence', 'rotate-key', `--overlap=${overlap}`], env);
    assert.equal(code, 2);
    assert.match(errors[0] ?? '', /--overlap must be a period such as 90m, 12h or 7d, from 0s to 366d/);
  }
  const later = await runHere(['evidence', 'rotate-key', '--signs-in', 'soon'], env);
  assert.match(
    later.errors[0] ?? '',
    /--signs-in must be a period such as 90m, 12h or 7d, from 0s to 366d, not 'soon'/,
  );
  for (let keys = 1; keys < 4; keys += 1) await artseal('evidence', 'rotate-key');
  const { code, errors } = await runHere(['evidence', 'rotate-key'], env);
  assert.deepEqual(
    [code, errors],
    [
      1,
      [
        'artseal: VALIDATION_FAILED: 4 keys sign the evidence log or are going to: wait until the overlap of an earlier rotation has ended, or end them all with --overlap 0s.',
      ],
    ],
  );
  // A stolen key can be ended, however many there are.
  const ended = await artseal('evidence', 'rotate-key', '--overlap', '0s');
  assert.deepEqual(await artseal('evidence', 'vkey'), ended.slice(0, 1));
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

test('if the master key is lost, secrets rotate makes another key sign', async (t) => {
  const service = await startPublishing(t, { env: { ARTSEAL_MASTER_KEY: newMasterKeyText().trim() } });
  const { dataDir, publication } = service;
  await service.file();
  const [lost = ''] = publication.verifierKeys();
  await service.close();
  const other = { ARTSEAL_MASTER_KEY: newMasterKeyText().trim() };
  const { code, printed } = await runHere(['secrets', 'rotate', '--json'], {
    ...other,
    ARTSEAL_DATA_DIR: dataDir,
  });
  assert.equal(code, 0);
  const { replaced, vkey } = JSON.parse(printed.at(-1) ?? '');
  assert.equal(replaced, lost);
  const again = await startPublishing(t, { dataDir, env: other });
  assert.deepEqual(again.publication.verifierKeys(), [vkey]);
  signedBy(again.publication.current()?.note ?? '', [vkey]);
});
