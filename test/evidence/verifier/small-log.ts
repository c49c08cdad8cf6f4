import { createHash, randomBytes } from 'node:crypto';
import { type NoteKey, noteKey } from '../../support/note-keys.ts';

/**
 * A small evidence log, written for the tests of the verifier from RFC 6962 and the C2SP specifications: it shares no code with
 * the service. Everything is computed from the leaves by the recursions of the RFC.
 */

const sha256 = (...parts: readonly (Uint8Array | string)[]): Buffer => {
  const hash = createHash('sha256');
  for (const part of parts) hash.update(part);
  return hash.digest();
};

/** The hash of the data of a leaf. */
export const hashOfLeaf = (data: string | Uint8Array): Buffer => sha256(Buffer.of(0), data);

/** A tree over hashes of leaves, which keeps the nodes that it computed. */
export function createTree(leaves: readonly Uint8Array[]) {
  const known = new Map<number, Buffer>();

  /** MTH(D[from:to]) of RFC 6962, section 2.1. */
  function root(from: number, to: number): Buffer {
    if (to === from) return sha256();
    if (to - from === 1) return Buffer.from(leaves[from] ?? Buffer.alloc(0));
    const place = from * 0x10_0000 + to;
    const computed =
      known.get(place) ??
      sha256(Buffer.of(1), root(from, from + split(to - from)), root(from + split(to - from), to));
    known.set(place, computed);
    return computed;
  }

  /** PATH(m, D[from:to]) of section 2.1.1. */
  function path(index: number, from: number, to: number): Buffer[] {
    if (to - from <= 1) return [];
    const middle = from + split(to - from);
    return index < middle
      ? [...path(index, from, middle), root(middle, to)]
      : [...path(index, middle, to), root(from, middle)];
  }

  /** SUBPROOF(m, D[from:to], b) of section 2.1.2. */
  function subproof(size: number, from: number, to: number, isWhole: boolean): Buffer[] {
    if (size === to) return isWhole ? [] : [root(from, to)];
    const middle = from + split(to - from);
    return size <= middle
      ? [...subproof(size, from, middle, isWhole), root(middle, to)]
      : [...subproof(size, middle, to, false), root(from, middle)];
  }

  return {
    root: (size: number) => root(0, size),
    inclusion: (index: number, size: number) => path(index, 0, size),
    consistency: (older: number, newer: number) => (older === 0 ? [] : subproof(older, 0, newer, true)),
    /** The root of a complete subtree, for tiles. */
    subtree: (level: number, place: number) => root(place * 2 ** level, (place + 1) * 2 ** level),
  };
}

/** Whether a consistency proof leads from the tree of the older size to that of the newer one: section 2.1.2, backwards. */
export function isConsistent(
  older: { readonly size: number; readonly root: Buffer },
  newer: typeof older,
  proof: readonly Buffer[],
): boolean {
  const left = [...proof];
  const next = () => left.pop() ?? Buffer.alloc(0);
  function roots(size: number, to: number, isWhole: boolean): readonly [Buffer, Buffer] {
    if (size === to) {
      const hash = isWhole ? older.root : (left.shift() ?? Buffer.alloc(0));
      return [hash, hash];
    }
    const sibling = next();
    const half = split(to);
    const [one, other] = size <= half ? roots(size, half, isWhole) : roots(size - half, to - half, false);
    return size <= half
      ? [one, sha256(Buffer.of(1), other, sibling)]
      : [sha256(Buffer.of(1), sibling, one), sha256(Buffer.of(1), sibling, other)];
  }
  if (older.size === 0) return proof.length === 0 && older.root.equals(sha256());
  const [one, other] = roots(older.size, newer.size, true);
  return left.length === 0 && one.equals(older.root) && other.equals(newer.root);
}

/** The root over hashes of leaves, or of complete subtrees of one size. */
export const rootOf = (hashes: readonly Uint8Array[]): Buffer => createTree(hashes).root(hashes.length);

function split(leaves: number): number {
  let power = 1;
  while (power * 2 < leaves) power *= 2;
  return power;
}

/** A record of a bundle. */
export interface SmallRecord {
  readonly kind: 'FILING' | 'TRANSFER';
  readonly number: string;
  readonly sequence: number;
  readonly timeS: number;
  readonly text: string;
}

/** A filing at a time, Unix seconds; `changes` replaces members. */
export function filingAt(
  timeS: number,
  place = 1,
  changes: Readonly<Record<string, unknown>> = {},
): SmallRecord {
  const timestamp = `${new Date((timeS + 8 * 3600) * 1000).toISOString().slice(0, 19)}+08:00`;
  const number = `AS-${timestamp.slice(0, 4)}-${String(place).padStart(6, '0')}`;
  const text = sortedJson({
    ...{ author: 'Qi Baishi', condition: 'two restored creases', era: '1947', filingNo: number },
    ...{ material: 'ink and colour on paper', price: 128_000_000, size: '68 x 136 cm', timestamp },
    ...changes,
  });
  return { kind: 'FILING', number, sequence: 1, timeS, text };
}

/** The TRANSFER of a filing with that sequence. */
export function transferAt(timeS: number, number: string, sequence: number): SmallRecord {
  const at = new Date((timeS + 8 * 3600) * 1000).toISOString().slice(0, 10);
  const text = sortedJson({ at, event: 'TRANSFER', filingNo: number, sequence });
  return { kind: 'TRANSFER', number, sequence, timeS, text };
}

/** JSON with the members in order. */
export function sortedJson(object: Readonly<Record<string, unknown>>): string {
  return JSON.stringify(
    Object.fromEntries(Object.entries(object).sort(([one], [other]) => (one < other ? -1 : 1))),
  );
}

/** A member of a salted record as a bundle discloses it. */
export interface SmallMember {
  readonly salt: string;
  readonly value: string;
}

/** A filing as a record of version 2, which has salted digests. */
export interface SaltedRecord extends SmallRecord {
  readonly hash: string;
  /** What each digest was made of. */
  readonly opened: Readonly<Record<string, SmallMember>>;
}

/** Salts the members of a filing. `others` are its members that the evidence hash does not cover. */
export function salted(
  filing: SmallRecord,
  others: { readonly caller?: string; readonly attachments?: string } = {},
  saltOf: (name: string) => Buffer = () => randomBytes(16),
): SaltedRecord {
  const { caller = 'Gallery One', ...attached } = others;
  const { filingNo, timestamp, ...plain } = JSON.parse(filing.text);
  const opened = Object.fromEntries(
    Object.entries({ ...plain, ...attached }).map(([name, value]) => [
      name,
      { salt: saltOf(name).toString('hex'), value: String(value) },
    ]),
  );
  const text = sortedJson({ ...digestsOf(opened), caller, filingNo, timestamp, version: 2 });
  return { ...filing, text, hash: sha256(filing.text).toString('hex'), opened };
}

/** The digest of each member, in hex. */
export const digestsOf = (opened: SaltedRecord['opened']): Record<string, string> =>
  Object.fromEntries(
    Object.entries(opened).map(([name, { salt, value }]) => [name, sha256(salt, value).toString('hex')]),
  );

interface AnyBundle {
  format: string;
  version: number;
  record: string;
  leaf: string;
  proof: string;
  timeStamp?: { proof: string; token: string };
}

/** A bundle of version 1 as JSON has it. */
export interface SmallBundle extends AnyBundle {
  hash: string;
  salt: string;
}

/** A bundle of version 2. */
export interface SaltedBundle extends AnyBundle {
  hash?: string;
  disclosed: Record<string, SmallMember>;
}

/** The leaf of a record: its data, and the salt that opens its commitment, which a salted record does not need. */
export function commit(
  { kind, number, sequence, timeS, text, ...record }: SmallRecord | SaltedRecord,
  salt: Uint8Array = randomBytes(32),
) {
  const commitment = ('opened' in record ? sha256(text) : sha256(salt, sha256(text))).toString('hex');
  return { salt, data: sortedJson({ commitment, kind, number, sequence, time: timeS, version: 1 }) };
}

/** The leaf of a log event. */
export function actAt(
  kind: string,
  timeS: number,
  sequence: number,
  detail: Readonly<Record<string, unknown>>,
): string {
  const members = { kind, number: 'LOG', sequence, time: timeS, version: 1 };
  return sortedJson({ ...members, detail: JSON.parse(sortedJson(detail)) });
}

/** A log that is signed with these keys. */
export class SmallLog {
  readonly origin: string;
  readonly keys: NoteKey[];
  /** The data of the leaves. */
  readonly leaves: string[] = [];
  readonly #records = new Map<
    number,
    { readonly record: SmallRecord | SaltedRecord; readonly salt: Uint8Array }
  >();

  constructor(origin = 'log.example/artworks', keys: NoteKey[] = [noteKey(origin)]) {
    this.origin = origin;
    this.keys = keys;
  }

  /** The command-line options with all of its keys. */
  get keyWords(): string[] {
    return this.keys.flatMap(({ vkey }) => ['--key', vkey]);
  }

  /** Appends the data of a leaf. Returns its index. */
  append(data: string): number {
    return this.leaves.push(data) - 1;
  }

  /** Appends a record. Returns the index of its leaf. */
  record(record: SmallRecord | SaltedRecord, itsSalt?: Uint8Array): number {
    const { salt, data } = commit(record, itsSalt);
    const index = this.append(data);
    this.#records.set(index, { record, salt });
    return index;
  }

  /** Appends a log event, by default at the time of the newest leaf. Returns the index of its leaf. */
  act(kind: string, detail: Readonly<Record<string, unknown>>, timeS = this.newestS): number {
    const acts = this.leaves.filter((data) => data.includes('"number":"LOG"')).length;
    return this.append(actAt(kind, timeS, acts + 1, detail));
  }

  /** Appends KEY_ADDED for its keys, as a real log does before its first checkpoint. */
  addKeys(): this {
    for (const { vkey } of this.keys) this.act('KEY_ADDED', { vkey });
    return this;
  }

  get newestS(): number {
    return JSON.parse(this.leaves.at(-1) ?? '{"time":0}').time;
  }

  tree() {
    return createTree(this.leaves.map(hashOfLeaf));
  }

  /** The signed checkpoint of the first `size` leaves, or of another root. */
  checkpoint(size = this.leaves.length, root: Uint8Array = this.tree().root(size)): string {
    const text = `${this.origin}\n${size}\n${Buffer.from(root).toString('base64')}\n`;
    return `${text}\n${this.keys.map((key) => key.line(text)).join('')}`;
  }

  /** The tlog-proof of a leaf. */
  proof(index: number, size = this.leaves.length, checkpoint = this.checkpoint(size)): string {
    const path = this.tree().inclusion(index, size);
    const hashes = path.map((hash) => `${hash.toString('base64')}\n`).join('');
    return `c2sp.org/tlog-proof@v1\nindex ${index}\n${hashes}\n${checkpoint}`;
  }

  /** The bundle of a salted record that was appended, which hides some members. */
  saltedBundle(index: number, hidden: readonly string[] = [], size = this.leaves.length): SaltedBundle {
    const record = this.#records.get(index)?.record;
    if (record === undefined || !('opened' in record)) throw new Error(`Leaf ${index} is not salted.`);
    const disclosed = Object.fromEntries(
      Object.entries(record.opened).filter(([name]) => !hidden.includes(name)),
    );
    const isWhole = hidden.every((name) => name === 'attachments');
    return {
      ...{ format: 'artseal-evidence', version: 2, record: record.text, disclosed },
      ...(isWhole && { hash: record.hash }),
      ...{ leaf: this.leaves[index] ?? '', proof: this.proof(index, size) },
    };
  }

  /** The bundle of a record that was appended. */
  bundle(index: number, size = this.leaves.length): SmallBundle {
    const { record, salt } = this.#records.get(index) ?? { record: filingAt(0), salt: Buffer.alloc(32) };
    const [hash, saltText] = [sha256(record.text).toString('hex'), Buffer.from(salt).toString('hex')];
    return {
      ...{ format: 'artseal-evidence', version: 1, record: record.text, hash, salt: saltText },
      ...{ leaf: this.leaves[index] ?? '', proof: this.proof(index, size) },
    };
  }
}

/** A log with LOG_BEGUN and so many filings, one per second from 2026-11-21T01:15:00Z or another time. */
export function smallLog(filings: number, fromS = begunS): SmallLog {
  const log = new SmallLog();
  log.append(actAt('LOG_BEGUN', fromS, 1, { adopted: 0 }));
  for (let place = 1; place <= filings; place += 1) log.record(filingAt(fromS + place, place));
  return log;
}

/** When the small log was begun, Unix seconds. */
export const begunS = Date.UTC(2026, 10, 21, 1, 15) / 1000;
