import assert from 'node:assert/strict';
import { createHash, createPublicKey, verify } from 'node:crypto';
import { naiveLeaf, naiveRootOfProof } from './naive-tree.ts';

/** Checks evidence as somebody does who has its formats and the verifier key, and nothing of the service. */

const sha256 = (...parts: readonly (string | Uint8Array)[]): Buffer => {
  const digest = createHash('sha256');
  for (const part of parts) digest.update(part);
  return digest.digest();
};

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

/** Canonical JSON (RFC 8785) of an object whose members are texts and integers. */
export function canonical(members: Readonly<Record<string, unknown>>): string {
  const names = Object.keys(members).sort();
  return `{${names.map((name) => `${JSON.stringify(name)}:${JSON.stringify(members[name])}`).join(',')}}`;
}

/** Recomputes all that a bundle says; throws AssertionError where it does not prove what it says. */
export function proven(bundle: Readonly<Record<string, unknown>>, vkey: string): Proven {
  const members = ['format', 'version', 'record', 'hash', 'salt', 'leaf', 'proof'];
  assert.deepEqual(Object.keys(bundle), members);
  assert.deepEqual([bundle.format, bundle.version], ['artseal-evidence', 1]);
  const [record, hash, salt, leaf, proof] = members.slice(2).map((name) => String(bundle[name]));
  assert.ok(record !== undefined && hash !== undefined && salt !== undefined);
  assert.ok(leaf !== undefined && proof !== undefined);
  assert.equal(canonical(JSON.parse(record)), record);
  assert.equal(sha256(record).toString('hex'), hash);
  assert.match(salt, /^[0-9a-f]{64}$/);
  const told = JSON.parse(leaf);
  assert.equal(canonical(told), leaf);
  assert.equal(told.commitment, sha256(Buffer.from(salt, 'hex'), Buffer.from(hash, 'hex')).toString('hex'));

  const [head = '', ...rest] = proof.split('\n\n');
  const [version, indexLine = '', ...hashes] = head.split('\n');
  assert.equal(version, 'c2sp.org/tlog-proof@v1');
  const index = Number(/^index (0|[1-9]\d*)$/.exec(indexLine)?.[1]);
  const { size, root } = readNote(rest.join('\n\n'), vkey);
  const path = hashes.map((line) => Buffer.from(line, 'base64'));
  for (const [at, node] of path.entries()) assert.equal(node.toString('base64'), hashes[at]);
  assert.deepEqual(naiveRootOfProof(index, size, naiveLeaf(leaf), path), root);
  return { record: JSON.parse(record), leaf: told, index, size };
}

/** The tree that a signed checkpoint is about; throws AssertionError unless the key has signed it. */
export function readNote(note: string, vkey: string): { readonly size: number; readonly root: Buffer } {
  const [, name = '', keyId = '', key = ''] = /^([^+]+)\+([0-9a-f]{8})\+(.+)$/.exec(vkey) ?? [];
  const [, text = '', signatures = ''] = /^(.+?\n)\n(.+\n)$/s.exec(note) ?? assert.fail(note);
  const [origin, size, root = '', ...more] = text.split('\n');
  assert.deepEqual([origin, more], [name, ['']]);
  const line = signatures.split('\n').find((signature) => signature.startsWith(`— ${name} `));
  const signed = Buffer.from(line?.split(' ')[2] ?? '', 'base64');
  assert.equal(signed.subarray(0, 4).toString('hex'), keyId);
  const encoded = Buffer.from(key, 'base64');
  assert.equal(encoded[0], 1);
  assert.equal(sha256(`${name}\n`, encoded).subarray(0, 4).toString('hex'), keyId);
  const spki = Buffer.concat([Buffer.from('302a300506032b6570032100', 'hex'), encoded.subarray(1)]);
  const publicKey = createPublicKey({ key: spki, format: 'der', type: 'spki' });
  assert.ok(verify(null, Buffer.from(text), publicKey, signed.subarray(4)), 'The signature is bad.');
  return { size: Number(size), root: Buffer.from(root, 'base64') };
}
