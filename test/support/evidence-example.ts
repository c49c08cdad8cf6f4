import { hash } from 'node:crypto';
import { filingAt, type SmallBundle, SmallLog, transferAt } from '../evidence/verifier/small-log.ts';
import { type NoteKey, noteKey } from './note-keys.ts';

/**
 * The log of five leaves in docs/evidence.md, with a public key (the first of RFC 8032, section 7.1) and public salts, so that
 * another program can compute the same bytes.
 */

/** The name of the log. */
export const exampleOrigin = 'registry.example/log';

const seed = '9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60';

/** The key of the log. */
export const exampleKey: NoteKey = noteKey(exampleOrigin, Buffer.from(seed, 'hex'));

const at = (time: string): number => Date.parse(`${time}+08:00`) / 1_000;
const price = 12_800_000;
const log = new SmallLog(exampleOrigin, [exampleKey]);
for (const [index, record] of [
  filingAt(at('2026-11-21T09:00:00'), 1, { author: 'Xu Beihong', price: 0 }),
  filingAt(at('2026-11-21T09:14:59'), 2, { author: 'Zhang Daqian', price }),
  filingAt(at('2026-11-21T09:15:00'), 3, { price }),
  filingAt(at('2026-11-23T18:40:12'), 4, { author: 'Pan Tianshou', price }),
  transferAt(at('2026-12-02T10:30:00'), 'AS-2026-000003', 2),
].entries())
  log.record(record, hash('sha256', `salt of leaf ${index}`, 'buffer'));

/** The checkpoint of the first leaves of the example. */
export const exampleCheckpoint = (size?: number): string => log.checkpoint(size);

/** The bundle of a leaf of the example. */
export const exampleBundle = (index: number): SmallBundle => log.bundle(index);
