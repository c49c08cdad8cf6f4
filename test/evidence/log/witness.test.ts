import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { PublishedCheckpoint } from '../../../src/evidence/log/publication.ts';
import { createWitnesses, readWitnessKey, witnessLimits } from '../../../src/evidence/log/witness.ts';
import { createLog } from '../../../src/lib/log.ts';
import { executorOf } from '../../../src/store/store.ts';
import { sqliteInThisThread } from '../../store/engines.ts';
import { addPlatform, fileOne, openStore } from '../../store/promises/fixtures.ts';
import { createManualClock } from '../../support/clock.ts';
import { eventually } from '../../support/eventually.ts';
import { noteKey } from '../../support/note-keys.ts';
import { startWitness, type WitnessLie, type WitnessStandIn } from '../../support/witness-stand-in.ts';

const origin = 'artseal.test/log';
const minute = 60_000;

type Setting = Awaited<ReturnType<typeof prepare>>;

/** Makes a log with a key, and its witnesses. */
async function prepare(t: TestContext, names: readonly string[], required = 0) {
  const store = await openStore(t, sqliteInThisThread);
  const by = await addPlatform(store, 'gallery');
  const key = noteKey(origin);
  const standIns = await Promise.all(names.map((name) => startWitness(t, name)));
  for (const { logs } of standIns) logs.add(key.vkey);
  const clock = createManualClock();
  const lines: Record<string, unknown>[] = [];
  const log = createLog({ write: (line) => lines.push(JSON.parse(line)) });
  /** Another process of the same log, which knows nothing about its witnesses. */
  const restarted = () => {
    const witnesses = standIns.map(({ vkey, url }) => ({ key: readWitnessKey(vkey), url }));
    const created = createWitnesses({ witnesses, required, execute: executorOf(store), clock, log });
    t.after(created.stop);
    return created;
  };
  const witnesses = restarted();
  return {
    ...{ clock, lines, standIns, restarted, witnesses },
    /** Has a checkpoint cosigned. Resolves to the names of the witnesses that did, in order. */
    cosigners: async (checkpoint: PublishedCheckpoint, by = witnesses): Promise<string> => {
      const note = await by.cosign(checkpoint);
      assert.ok(note.startsWith(checkpoint.note));
      return Array.from(note.matchAll(/^— (\S+) /gm), ([, name]) => name)
        .filter((name) => name !== origin)
        .join();
    },
    /** Files an artwork, and signs the tree. */
    grown: async (): Promise<PublishedCheckpoint> => {
      await fileOne(store, by);
      const { size, root } = await executorOf(store)({ kind: 'GetTree' });
      const text = `${origin}\n${size}\n${Buffer.from(root).toString('base64')}\n`;
      return { origin, size, root, note: key.sign(text) };
    },
  };
}

const whyOf = ({ lines }: Setting, witness: string) =>
  lines.filter((line) => line.witness === witness).map((line) => line.why ?? line.msg);

test('witnesses cosign each checkpoint, beginning with the size that they know', async (t) => {
  const setting = await prepare(t, ['one.example/w', 'two.example/w'], 2);
  for (let count = 0; count < 9; count += 1) {
    assert.equal(await setting.cosigners(await setting.grown()), 'one.example/w,two.example/w');
  }
  for (const { asked, cosigned } of setting.standIns) {
    assert.deepEqual(
      asked.map(({ old, status }) => [old, status]),
      [0, 2, 3, 4, 5, 6, 7, 8, 9].map((old) => [old, 200]),
    );
    assert.equal(cosigned.get(origin)?.size, 10);
  }
  assert.deepEqual(setting.lines, []);
});

test('a witness that knows another size returns it, and cosigns from there', async (t) => {
  const setting = await prepare(t, ['one.example/w'], 1);
  await setting.witnesses.cosign(await setting.grown());
  await setting.grown();
  const checkpoint = await setting.grown();
  const restarted = setting.restarted();
  assert.equal(await setting.cosigners(checkpoint, restarted), 'one.example/w');
  // The same again: nothing has grown since.
  assert.equal(await setting.cosigners(checkpoint, restarted), 'one.example/w');
  assert.deepEqual(
    setting.standIns[0]?.asked.map(({ old, size, status }) => [old, size, status]),
    [
      [0, 2, 200],
      [0, 4, 409],
      [2, 4, 200],
      [4, 4, 200],
    ],
  );
});

const lies: Readonly<Record<Exclude<WitnessLie, 'SILENCE'>, RegExp>> = {
  ANOTHER_CHECKPOINT: /cosignature of this checkpoint is not valid/,
  ANOTHER_KEY: /cosignature of this checkpoint is not valid/,
  OLD_TIME: /time of its cosignature is more than 300 s earlier than the clock/,
  FUTURE_TIME: /time of its cosignature is more than 300 s later than the clock/,
  SHORT_SIGNATURE: /cosignature of this checkpoint is not valid/,
  GARBAGE: /no cosignature by its key/,
  NO_HTTP: /HTTP|Expected|Parse/,
  ENDLESS: /more than 65536 bytes/,
  REDIRECT: /redirects \(307\)/,
  ERROR: /it returned an error \(500: "a stack, and more"\)/,
  CONFLICT_WITHOUT_SIZE: /the size in its 409 response has to be a whole number/,
  CONFLICT_FOR_EVER: /it returned an error \(409: "\d+"\)/,
  CONFLICT_BEYOND: /has cosigned \d+ leaves, and the log has only \d+: the database is older/,
};

test('a wrong response of a witness is ignored, logged once, and delays nobody', async (t) => {
  const setting = await prepare(t, ['honest.example/w', 'liar.example/w']);
  const { clock, witnesses, standIns, lines } = setting;
  const liar = standIns[1] as WitnessStandIn;
  const rest = () => {
    clock.advance(witnessLimits.pauseMaxMs);
    clock.setWall(Date.now());
  };
  for (const [lie, expected] of Object.entries(lies) as [WitnessLie, RegExp][]) {
    const checkpoint = await setting.grown();
    const logged = lines.length;
    liar.lie = lie;
    for (const time of ['at first', 'again']) {
      assert.equal(await setting.cosigners(checkpoint), 'honest.example/w', `${lie}, ${time}`);
      assert.equal(witnesses.rolledBack().length, lie === 'CONFLICT_BEYOND' ? 1 : 0, lie);
      rest();
    }
    liar.lie = undefined;
    assert.equal(await setting.cosigners(checkpoint), 'honest.example/w,liar.example/w', lie);
    const [rejected, again, ...more] = lines.slice(logged);
    assert.equal(rejected?.witness, 'liar.example/w');
    assert.match(String(rejected?.why), expected);
    assert.match(String(again?.msg), /cosigns the evidence log again/);
    assert.deepEqual(more, []);
  }
});

test('a witness that does not respond delays one checkpoint, and is then left out for a while', async (t) => {
  const setting = await prepare(t, ['honest.example/w', 'silent.example/w']);
  const [honest, silent] = setting.standIns as [WitnessStandIn, WitnessStandIn];
  silent.lie = 'SILENCE';
  const checkpoint = await setting.grown();
  const cosigning = setting.cosigners(checkpoint);
  await eventually('both are asked', minute, () => honest.asked.length === 1 && silent.asked.length === 1);
  // When this response arrives, the earlier one has arrived too.
  await fetch(honest.url);
  setting.clock.advance(witnessLimits.timeoutMs);
  assert.equal(await cosigning, 'honest.example/w');
  // The clock stands still: this would not resolve if it were asked.
  assert.equal(await setting.cosigners(checkpoint), 'honest.example/w');
  assert.equal(silent.asked.length, 1);
  assert.deepEqual(whyOf(setting, 'silent.example/w'), ['no response within 2 seconds']);
  silent.lie = undefined;
  setting.clock.advance(witnessLimits.pauseMs);
  assert.equal(await setting.cosigners(checkpoint), 'honest.example/w,silent.example/w');
});

test('the log says why a witness rejects the log, and what to do', async (t) => {
  const setting = await prepare(t, ['new.example/w']);
  const witness = setting.standIns[0] as WitnessStandIn;
  const checkpoint = await setting.grown();
  const [known = ''] = witness.logs;
  const faults: readonly (readonly [fault: () => void, why: RegExp])[] = [
    [() => witness.logs.clear(), /does not know a log of this name.*evidence vkey.*404/],
    [() => witness.logs.add(noteKey(origin).vkey), /verifier key of the log.*evidence vkey.*403/],
    [
      // It has seen another tree of this size.
      () =>
        witness.logs.add(known) &&
        witness.cosigned.set(origin, { size: checkpoint.size, root: Buffer.alloc(32) }),
      /does not begin with what it cosigned before \(422/,
    ],
  ];
  for (const [fault, why] of faults) {
    fault();
    assert.equal(await setting.cosigners(checkpoint), '');
    assert.match(String(whyOf(setting, witness.name).at(-1)), why);
    setting.clock.advance(2 * minute);
  }
});

test('a witness that has seen more of the log, or another one, reports a rollback until it cosigns again', async (t) => {
  const setting = await prepare(t, ['one.example/w', 'two.example/w']);
  const { witnesses, clock, lines } = setting;
  const [one, two] = setting.standIns as [WitnessStandIn, WitnessStandIn];
  const shown = async (checkpoint: PublishedCheckpoint) => {
    clock.advance(witnessLimits.pauseMaxMs);
    clock.setWall(Date.now());
    await witnesses.cosign(checkpoint);
    return witnesses.rolledBack();
  };
  const checkpoint = await setting.grown();
  assert.deepEqual(await shown(checkpoint), []);
  const cosigned = one.cosigned.get(origin) ?? assert.fail();

  one.cosigned.set(origin, { ...cosigned, size: 9 });
  const grown = await setting.grown();
  const [ahead, ...more] = await shown(grown);
  assert.match(ahead ?? '', /^one.example\/w: it has cosigned 9 leaves, and the log has only 3/);
  assert.deepEqual(more, []);
  // An error of the witness does not withdraw the report.
  one.lie = 'ERROR';
  assert.deepEqual(await shown(grown), [ahead]);
  one.lie = undefined;
  two.cosigned.set(origin, { size: 3, root: Buffer.alloc(32) });
  const [, inconsistent] = await shown(grown);
  assert.match(inconsistent ?? '', /^two.example\/w: it finds that the log does not begin with .* \(422/);
  one.cosigned.set(origin, cosigned);
  two.cosigned.set(origin, cosigned);
  assert.deepEqual(await shown(grown), []);

  const found = lines.filter(({ msg }) => msg === 'a witness finds that the evidence log was rolled back');
  assert.deepEqual(found.map(({ witness, level }) => `${witness} ${level}`).sort(), [
    'one.example/w 50',
    'one.example/w 50',
    'two.example/w 50',
  ]);
});

test('a witness to which another instance has shown more of the log reports no rollback', async (t) => {
  const setting = await prepare(t, ['one.example/w']);
  const [one] = setting.standIns as [WitnessStandIn];
  const [checkpoint, newer] = [await setting.grown(), await setting.grown()];
  await setting.witnesses.cosign(newer);
  const { confirm, rolledBack } = setting.restarted();
  await confirm(checkpoint);
  assert.deepEqual([rolledBack(), setting.lines], [[], []]);
  // It is shown the newer one at once, and not the older one again.
  await confirm(newer);
  await confirm(newer);
  assert.deepEqual(
    one.asked.slice(1).map(({ old, size, status }) => [old, size, status]),
    [
      [0, 2, 409],
      [0, 3, 409],
      [3, 3, 200],
    ],
  );
});

test('a log that does not grow is shown to a witness until the witness has judged it', async (t) => {
  const setting = await prepare(t, ['one.example/w', 'two.example/w']);
  const [one, two] = setting.standIns as [WitnessStandIn, WitnessStandIn];
  const published = { ...(await setting.grown()) };
  published.note = await setting.witnesses.cosign(published);
  const { confirm, rolledBack } = setting.restarted();
  one.asked.length = 0;
  two.asked.length = 0;
  two.lie = 'ERROR';
  const look = async () => {
    setting.clock.advance(witnessLimits.pauseMaxMs);
    setting.clock.setWall(Date.now());
    await confirm(published);
    return [one, two].map(({ asked }) => asked.splice(0).map(({ old, size, status }) => [old, size, status]));
  };
  const judged = [
    [0, 2, 409],
    [2, 2, 200],
  ];
  assert.deepEqual(await look(), [judged, [[0, 2, 500]]]);
  two.lie = undefined;
  two.cosigned.set(origin, { size: 7, root: Buffer.alloc(32) });
  assert.deepEqual(await look(), [[], [[0, 2, 409]]]);
  assert.equal(rolledBack().length, 1);
  two.cosigned.set(origin, one.cosigned.get(origin) ?? assert.fail());
  assert.deepEqual(await look(), [[], judged]);
  assert.deepEqual(rolledBack(), []);
  assert.deepEqual(await look(), [[], []]);
});

test('while required witnesses are missing, nothing is cosigned', async (t) => {
  const setting = await prepare(t, ['one.example/w', 'two.example/w'], 2);
  const [, two] = setting.standIns as [WitnessStandIn, WitnessStandIn];
  two.lie = 'ERROR';
  for (let count = 0; count < 3; count += 1) {
    const message = '1 of 2 witnesses cosigned it, and 2 are required';
    await assert.rejects(setting.witnesses.cosign(await setting.grown()), { message });
    setting.clock.advance(minute);
  }
  two.lie = undefined;
  assert.equal(await setting.cosigners(await setting.grown()), 'one.example/w,two.example/w');
});
