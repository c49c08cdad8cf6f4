import assert from 'node:assert/strict';
import { test } from 'node:test';
import { clockToleranceS, readVerifierKey, verifyBundle } from '../../../src/evidence/verifier/index.ts';
import { checkpointTextOf, witnessKey } from '../../support/note-keys.ts';
import { cosignedAtS as atS } from './attesting.ts';
import { filingAt, type SmallBundle, smallLog } from './small-log.ts';

const log = smallLog(5);
const good = log.bundle(3);

const [one, two] = [witnessKey('one.example/w'), witnessKey('two.example/w')];
const cosigned = (...lines: readonly string[]) => ({ ...good, proof: good.proof + lines.join('') });

/** Returns who cosigned and when, or what is wrong. */
function verdict(bundle: SmallBundle, witnesses: readonly { vkey: string }[], required = 0, of = log) {
  const found = verifyBundle(JSON.stringify(bundle), {
    keys: of.keys.map(({ vkey }) => readVerifierKey(vkey)),
    witnesses: { keys: witnesses.map(({ vkey }) => readVerifierKey(vkey)), required },
  });
  if (!found.isProven) return `${found.kind}: ${found.what}`;
  return found.proven.cosignatures.map(({ witness, timeS }) => [witness.name, timeS]);
}

const text = checkpointTextOf(good.proof);

test('cosignatures of known witnesses are verified, with their times', () => {
  const bundle = cosigned(one.cosign(text, atS), two.cosign(text, atS + 7));
  assert.deepEqual(verdict(bundle, [one, two], 2), [
    ['one.example/w', atS],
    ['two.example/w', atS + 7],
  ]);
  assert.deepEqual(verdict(bundle, [two], 1), [['two.example/w', atS + 7]]);
  assert.deepEqual(verdict(bundle, []), []);
});

test('a witness counts once, however often it or its key is named', () => {
  const bundle = cosigned(one.cosign(text, atS), one.cosign(text, atS + 1));
  assert.match(String(verdict(bundle, [one, one, two], 2)), /^BAD_SIGNATURE: .*by 1 of the given witnesses/);
});

test('one key under two names is one witness', () => {
  const seed = Buffer.alloc(32, 7);
  const [here, there] = [witnessKey('here.example/w', seed), witnessKey('there.example/w', seed)];
  const bundle = cosigned(here.cosign(text, atS + 9), there.cosign(text, atS));
  assert.match(String(verdict(bundle, [here, there], 2)), /^BAD_SIGNATURE: .*by 1 of the given witnesses/);
  assert.deepEqual(verdict(bundle, [here, there], 1), [['there.example/w', atS]]);
});

test('a leaf that is dated after a cosignature that covers it is FORKED', () => {
  for (const [aheadS, isProven] of [
    [0, true],
    [clockToleranceS, true],
    [clockToleranceS + 1, false],
    [20 * 86_400, false],
    [400 * 86_400, false],
  ] as const) {
    const own = smallLog(3);
    const index = own.record(filingAt(atS + aheadS, 1));
    const plain = own.bundle(index);
    const bundle = { ...plain, proof: plain.proof + one.cosign(checkpointTextOf(plain.proof), atS) };
    const found = verdict(bundle, [one], 1, own);
    if (isProven) assert.deepEqual(found, [['one.example/w', atS]], String(aheadS));
    else
      assert.match(
        String(found),
        /^FORKED: the leaf is dated 202\d-.*, after the cosignature of one.example\/w that covers it/,
      );
  }
});

test('too few cosignatures are a bad signature', () => {
  assert.match(
    String(verdict(cosigned(one.cosign(text, atS)), [one, two], 2)),
    /^BAD_SIGNATURE: the checkpoint is cosigned by 1 of the given witnesses \(one.example\/w\), and 2 are required/,
  );
  assert.match(String(verdict(good, [one], 1)), /cosigned by 0 of the given witnesses \(none\), and 1/);
  // The key of the log itself is no witness.
  assert.match(String(verdict(good, log.keys, 1)), /cosigned by 0/);
});

test('an invalid cosignature of a known witness is a failure, even if none is required', () => {
  const forger = witnessKey('one.example/w');
  const [, , encoded = ''] = forger.cosign(text, atS).trim().split(' ');
  const id = Buffer.from(one.vkey.split('+')[1] ?? '', 'hex');
  const forged = Buffer.concat([id, Buffer.from(encoded, 'base64').subarray(4)]).toString('base64');
  const [, , own = ''] = one.cosign(text, atS).trim().split(' ');
  const short = Buffer.from(own, 'base64').subarray(0, 9).toString('base64');
  const lies = {
    'another key': `— one.example/w ${forged}\n`,
    'another text': one.cosign(text.replace('\n6\n', '\n7\n'), atS),
    'another time': one.cosign(text, atS, atS + 1),
    'no time that there is': one.cosign(text, 2 ** 60),
    'a stump': `— one.example/w ${short}\n`,
  };
  for (const [what, line] of Object.entries(lies)) {
    assert.match(
      String(verdict(cosigned(line), [one])),
      /^BAD_SIGNATURE: .*cosignature of one.example/,
      what,
    );
    assert.deepEqual(verdict(cosigned(line), [two]), [], what);
  }
});
