import { hash } from 'node:crypto';
import { canonicalEvidence, type Evidence, evidenceHash } from '../../src/domain/filing.ts';
import { commitmentTo, recordLeafData } from '../../src/domain/leaf.ts';
import { inclusionPath, type LeafRange, leafHash, rootOf, subtreesOf } from '../../src/domain/merkle.ts';
import { canonicalRecord, recordHash } from '../../src/domain/provenance.ts';
import { type NoteKey, noteKey } from './note-keys.ts';

/**
 * The log of five leaves that docs/evidence.md works out, with a key that everybody knows (the first of RFC 8032, section
 * 7.1) and salts that are no secret: another program comes to the same bytes.
 */

/** What a bundle has, by the names of its members. */
export interface ExampleBundle {
  readonly format: 'artseal-evidence';
  readonly version: 1;
  readonly record: string;
  readonly hash: string;
  readonly salt: string;
  readonly leaf: string;
  readonly proof: string;
}

/** The name of the log. */
export const exampleOrigin = 'registry.example/log';
/** The seed of the key that signs. */
const signingSeed = '9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60';

const example: Omit<Evidence, 'filingNo' | 'timestamp'> = {
  author: 'Qi Baishi',
  era: '1947',
  size: '68 x 136 cm',
  material: 'ink and colour on paper',
  condition: 'two restored creases',
  price: 12_800_000n,
};

/** The record that a leaf commits to, and the other members of the leaf. */
interface LoggedRecord {
  readonly kind: 'FILING' | 'TRANSFER';
  readonly number: string;
  readonly sequence: number;
  readonly timeS: number;
  readonly record: string;
  readonly evidenceHash: string;
}

const filing = (place: number, timestamp: string, changes: Partial<Evidence> = {}): LoggedRecord => {
  const evidence = { ...example, ...changes, filingNo: `AS-2026-00000${place}`, timestamp };
  return {
    ...{ kind: 'FILING', number: evidence.filingNo, sequence: 1 },
    timeS: Date.parse(timestamp) / 1_000,
    ...{ record: canonicalEvidence(evidence), evidenceHash: evidenceHash(evidence) },
  };
};

const transfer = (filingNo: string, timestamp: string): LoggedRecord => {
  const later = { filingNo, sequence: 2, event: 'TRANSFER', at: timestamp.slice(0, 10) } as const;
  return {
    ...{ kind: 'TRANSFER', number: filingNo, sequence: 2, timeS: Date.parse(timestamp) / 1_000 },
    ...{ record: canonicalRecord(later), evidenceHash: recordHash(later) },
  };
};

const records: readonly LoggedRecord[] = [
  filing(1, '2026-11-21T09:00:00+08:00', { author: 'Xu Beihong', price: 0n }),
  filing(2, '2026-11-21T09:14:59+08:00', { author: 'Zhang Daqian' }),
  filing(3, '2026-11-21T09:15:00+08:00'),
  filing(4, '2026-11-23T18:40:12+08:00', { author: 'Pan Tianshou' }),
  transfer('AS-2026-000003', '2026-12-02T10:30:00+08:00'),
];

/** The key of the example. */
export const exampleKey: NoteKey = noteKey(exampleOrigin, Buffer.from(signingSeed, 'hex'));

const salts = records.map((_, index) => hash('sha256', `salt of leaf ${index}`, 'buffer'));
const leaves = records.map(({ evidenceHash: digest, ...record }, index) =>
  recordLeafData({ ...record, commitment: commitmentTo(digest, salts[index] as Buffer) }),
);

/** The hash of a range of the example's leaves. */
function hashOf(range: LeafRange): Uint8Array {
  return rootOf(
    subtreesOf(range).map(({ level, place }) => {
      const start = place * 2 ** level;
      const hashes = leaves.slice(start, start + 2 ** level).map(leafHash);
      for (; hashes.length > 1; ) hashes.push(rootOf(hashes.splice(0, 2)));
      return hashes[0] as Uint8Array;
    }),
  );
}

const base64 = (bytes: Uint8Array): string => Buffer.from(bytes).toString('base64');

/** The checkpoint of the first leaves of the example. */
export function exampleCheckpoint(size: number = leaves.length, key: NoteKey = exampleKey): string {
  return key.sign(`${exampleOrigin}\n${size}\n${base64(hashOf({ start: 0, end: size }))}\n`);
}

/** The bundle of a leaf of the example. */
export function exampleBundle(index: number, size: number = leaves.length): ExampleBundle {
  const { record = '', evidenceHash: digest = '' } = records[index] ?? {};
  const path = inclusionPath(index, size).map((range) => `${base64(hashOf(range))}\n`);
  return {
    ...{ format: 'artseal-evidence', version: 1 },
    ...{ record, hash: digest },
    salt: (salts[index] as Buffer).toString('hex'),
    leaf: leaves[index] ?? '',
    proof: `c2sp.org/tlog-proof@v1\nindex ${index}\n${path.join('')}\n${exampleCheckpoint(size)}`,
  };
}
