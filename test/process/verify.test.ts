import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import {
  begunS,
  commit,
  filingAt,
  type SmallBundle,
  SmallLog,
  smallLog,
} from '../evidence/verifier/small-log.ts';
import { runCommand } from '../support/command.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const log = smallLog(300);
const good = log.bundle(7);
const sha256 = (...parts: readonly (string | Uint8Array)[]) => {
  const hash = createHash('sha256');
  for (const part of parts) hash.update(part);
  return hash.digest('hex');
};

test('a good bundle is verified by nothing but the bundle and the key', async (t) => {
  const file = join(temporaryFolder(t), 'evidence.json');
  writeFileSync(file, JSON.stringify(good));
  const { code, stdout, stderr } = await runCommand(['verify', file, ...log.keyWords], {
    ARTSEAL_DATA_DIR: '/dev/null/none',
    ARTSEAL_PUBLIC_ADDR: 'no address',
  });
  assert.deepEqual([code, stderr], [0, '']);
  assert.match(
    stdout,
    /^VERIFIED: the filing AS-2026-000007 is in the log, which dates it 2026-11-21T01:15:07Z/,
  );
  assert.match(stdout, /^ {2}author {5}Qi Baishi$/m);
  assert.match(stdout, /^log log\.example\/artworks: leaf 7 of 301$/m);
});

/** The record of an earlier day under another name: what somebody changes who owns the database. */
const backdated = filingAt(begunS - 86_400, 7, { author: 'Zhang Daqian' });

/** Lies about one leaf, each with its exit code. */
const lies: Readonly<Record<string, readonly [exitCode: number, bundle: () => Partial<SmallBundle>]>> = {
  'a record of an earlier day in the place of another, with its own hash': [
    4,
    () => ({ record: backdated.text, hash: sha256(backdated.text) }),
  ],
  'such a record with a leaf of its own': [5, () => leafFor(backdated)],
  'a changed record': [4, () => ({ record: good.record.replace('Qi Baishi', 'Qi Baish1') })],
  'a changed salt': [4, () => ({ salt: good.salt.replace(/^../, (byte) => (byte === '00' ? '01' : '00')) })],
  'a changed leaf': [4, () => ({ leaf: good.leaf.replace(/"time":\d+/, `"time":${begunS}`) })],
  'a proof for another index': [5, () => ({ proof: log.proof(8) })],
  'another index over its own proof': [5, () => ({ proof: good.proof.replace('index 7', 'index 6') })],
  'a tree that was cut off before the leaf': [
    5,
    () => ({ proof: `${good.proof.split('\n\n')[0]}\n\n${log.checkpoint(5)}` }),
  ],
  'a proof to a tree that nobody signed': [6, () => ({ proof: unsigned() })],
  'a tree that another log signed': [6, () => ({ proof: log.proof(7, 301, otherLog().checkpoint()) })],
  'a checkpoint of another size': [6, () => ({ proof: good.proof.replace('\n301\n', '\n300\n') })],
  'a bundle with a member besides': [3, () => ({ verified: true }) as Partial<SmallBundle>],
};

/** The proof of a log that has the same leaves and other keys. */
function unsigned(): string {
  const other = otherLog();
  return log.proof(7, 301, other.checkpoint());
}

/** A log of the same leaves that somebody else signs. */
function otherLog(): SmallLog {
  const other = new SmallLog(log.origin);
  other.leaves.push(...log.leaves);
  return other;
}

/** A record with the leaf that it would have had, and the proof of another. */
function leafFor(record: Parameters<typeof commit>[0]): Partial<SmallBundle> {
  const { salt, data } = commit(record);
  return {
    record: record.text,
    hash: sha256(record.text),
    salt: Buffer.from(salt).toString('hex'),
    leaf: data,
  };
}

for (const [name, [exitCode, changes]] of Object.entries(lies)) {
  test(`${name}: exit code ${exitCode}`, async () => {
    const bundle = JSON.stringify({ ...good, ...changes() });
    const { code, stdout, stderr } = await runCommand(['verify', '-', ...log.keyWords], {}, bundle);
    assert.deepEqual([code, stdout], [exitCode, ''], stderr);
    assert.match(stderr, /^NOT VERIFIED \([A-Z_]+\): /);
  });
}
