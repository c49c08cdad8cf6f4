import { hash } from 'node:crypto';
import {
  filingAt,
  type SaltedBundle,
  type SmallBundle,
  SmallLog,
  salted,
  transferAt,
} from '../evidence/verifier/small-log.ts';
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
const saltOf = (what: string) => hash('sha256', `salt of ${what}`, 'buffer');
const attachments = JSON.stringify([{ name: 'front.jpg', sha256: hash('sha256', 'test', 'hex') }]);
const log = new SmallLog(exampleOrigin, [exampleKey]);
for (const [index, record] of [
  filingAt(at('2026-11-21T09:00:00'), 1, { author: 'Xu Beihong', price: 0 }),
  filingAt(at('2026-11-21T09:14:59'), 2, { author: 'Zhang Daqian', price }),
  salted(filingAt(at('2026-11-21T09:15:00'), 3, { price }), { attachments }, (name) =>
    saltOf(`${name} of leaf 2`).subarray(0, 16),
  ),
  salted(filingAt(at('2026-11-23T18:40:12'), 4, { author: 'Pan Tianshou', price }), {}, (name) =>
    saltOf(`${name} of leaf 3`).subarray(0, 16),
  ),
  transferAt(at('2026-12-02T10:30:00'), 'AS-2026-000003', 2),
].entries())
  log.record(record, saltOf(`leaf ${index}`));

/** The checkpoint of the first leaves of the example. */
export const exampleCheckpoint = (size?: number): string => log.checkpoint(size);

/** The bundle of leaf 0, 1 or 4 of the example. */
export const exampleBundle = (index: number): SmallBundle => log.bundle(index);

/** The bundle of leaf 2 or 3 of the example, which are of version 2, without some members. */
export const exampleSalted = (index = 2, hidden: readonly string[] = ['price']): SaltedBundle =>
  log.saltedBundle(index, hidden);
