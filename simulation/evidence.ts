import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type Sqlite from 'better-sqlite3';
import { hashedMembers } from '../src/domain/filing.ts';
import { type IndexedLeaf, type LeafRow, leavesIn } from '../src/store/engine/leaves.ts';
import { must } from './violation.ts';

/** A record or log event, which must have a leaf. */
interface BookedEntry {
  readonly leafIndex: number | null;
  readonly kind: string;
  readonly number: string;
  readonly sequence: number;
  /** The time of the record or event, Unix seconds. */
  readonly atS: number;
  /** The rest of its leaf: the commitment of a record, or the detail of a log event. */
  readonly content: { readonly commitment: string } | { readonly detail: unknown };
}

/** The evidence log with the records and log events that it must contain. */
export type BookedLog = ReturnType<typeof readLog>;

type BookedCheckpoint = ReturnType<typeof readCheckpoint>;

/** A filing or later record. */
interface RecordRow extends Omit<BookedEntry, 'content'> {
  readonly salt: Buffer;
  /** JSON of its members by name. */
  readonly members: string;
  /** Undefined for a later record. */
  readonly version: number | null;
}

/** The column of a member: `filing_no` of `filingNo`. */
const columnOf = (member: string): string =>
  member.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

const selectRecords = `
  SELECT leaf_index AS leafIndex, 'FILING' AS kind, filing_no AS number, 1 AS sequence, filed_at_s AS atS, salt,
    record_version AS version, json_object('attachments', attachments, 'caller', caller.name,
      ${hashedMembers.map((name) => `'${name}', ${columnOf(name)}`)}) AS members
    FROM filing JOIN caller ON caller.id = filing.caller_id
  UNION ALL
  SELECT leaf_index, event, filing_no, position, recorded_at_s, salt, NULL,
    json_object('at', at, 'event', event, 'filingNo', filing_no, 'sequence', position) FROM provenance_record`;

const selectLogEvents = `
  SELECT leaf_index AS leafIndex, kind, 'LOG' AS number, sequence, time_s AS atS, detail FROM log_event`;

/** The members of a filing that its record has as digests, in the order of their salts. */
const digested = ['author', 'condition', 'era', 'material', 'price', 'size', 'attachments'];

/** What the leaf of a record commits to. */
function commitmentTo(members: Record<string, unknown>, salt: Buffer, version: number | null): Buffer {
  if (version === 1) for (const name of ['attachments', 'caller']) delete members[name];
  if (version !== 2) return sha256(salt, sha256(JSON.stringify(sorted(members))));
  const salts = salt.toString('hex').match(/.{32}/g) ?? [];
  const record: Record<string, unknown> = { ...members, version };
  if (record.attachments === null) delete record.attachments;
  for (const [nth, name] of digested.entries())
    if (name in record) record[name] = sha256(`${salts[nth]}${record[name]}`).toString('hex');
  return sha256(JSON.stringify(sorted(record)));
}

/** Reads the log from the database of the service and the checkpoint files in the folders of its instances. */
export function readLog(client: Sqlite.Database, folders: readonly string[]) {
  const all = <Row>(sql: string) => client.prepare<[], Row>(sql).all();
  const records = all<RecordRow>(selectRecords).map(({ salt, members, version, ...record }) => ({
    ...record,
    content: {
      commitment: commitmentTo(JSON.parse(members), salt, version).toString('hex'),
    },
  }));
  const events = all<Omit<BookedEntry, 'content'> & { detail: string }>(selectLogEvents).map(
    ({ detail, ...event }) => ({
      ...event,
      content: { detail: sorted(JSON.parse(detail)) },
    }),
  );
  const files = folders.map((folder) => join(folder, 'log-checkpoint')).filter((file) => existsSync(file));
  const [newest] = all<{ note: string }>('SELECT note FROM log_checkpoint ORDER BY size DESC LIMIT 1');
  return {
    leaves: all<LeafRow>('SELECT * FROM log_leaf ORDER BY id').flatMap((row) => leavesIn(row) ?? []),
    entries: [...records, ...events] satisfies BookedEntry[],
    /** The newest checkpoints. An instance writes its file first. */
    checkpoints: {
      files: files.map((file) => readCheckpoint(readFileSync(file, 'utf8'))),
      database: newest && readCheckpoint(newest.note),
    },
  };
}

/** Reads the size and the root, in hex, from the note of a checkpoint. */
export function readCheckpoint(note: string) {
  const [, size, root = ''] = note.split('\n');
  return { size: Number(size), root: Buffer.from(root, 'base64').toString('hex') };
}

/**
 * Throws a Violation unless the tree, the leaves, and the records and log events match, and the tree extends each tree
 * in `shown`, which has roots in hex by size. Computes hashes without code of the service.
 */
export function checkLog(
  { leaves, entries, checkpoints: { files, database } }: BookedLog,
  shown: ReadonlyMap<number, string>,
): void {
  const published = Array.from(shown, ([size, root]) => ({ size, root }));
  if (database !== undefined) published.push(database);
  const kept = Math.max(0, ...files.map(({ size }) => size));
  for (const { size } of published) {
    must(
      size <= kept,
      'world',
      `a checkpoint of size ${size} was published, but the checkpoint file has size ${kept}`,
    );
  }
  checkTree(leaves, [...published, ...files]);
  checkLeaves(leaves);
  checkEntries(leaves, entries);
}

/** No leaf is missing, the stored hashes are those of RFC 6962, and the tree extends each published tree. */
function checkTree(leaves: readonly IndexedLeaf[], published: readonly BookedCheckpoint[]): void {
  const largest = Math.max(0, ...published.map(({ size }) => size));
  const message = `a checkpoint of size ${largest} was published, but the log has ${leaves.length} leaves`;
  must(largest <= leaves.length, 'world', message);
  const rootsOf = Map.groupBy(published, ({ size }) => size);
  /** The roots of the complete subtrees so far, from left to right. */
  const roots: Buffer[] = [];
  for (const [place, { index, data, hashes }] of leaves.entries()) {
    must(place === index, 'world', `leaf ${place} of the log is missing; the next is ${index}`);
    const completed = [sha256(Buffer.of(0), data)];
    for (let rest = index; rest % 2 === 1; rest = (rest - 1) / 2) {
      completed.push(node(roots.pop(), completed.at(-1)));
    }
    roots.push(completed.at(-1) as Buffer);
    const isStored = Buffer.concat(completed).equals(hashes);
    must(isStored, 'world', `leaf ${index} is stored with wrong hashes`);
    const own = () => roots.reduceRight((right, left) => node(left, right)).toString('hex');
    const isSame = (rootsOf.get(index + 1) ?? []).every(({ root }) => root === own());
    must(isSame, 'world', `the tree of size ${index + 1} differs from the published one`);
  }
}

/** The time of a leaf is never before that of the previous leaf, except after CLOCK_ACCEPTED. */
function checkLeaves(leaves: readonly IndexedLeaf[]): void {
  let newestS = 0;
  for (const { index, data } of leaves) {
    const { kind, time } = JSON.parse(data) as { kind: string; time: number };
    must(
      time >= newestS || kind === 'CLOCK_ACCEPTED',
      'world',
      `leaf ${index} has the time ${time}, and the previous leaf ${newestS}`,
    );
    newestS = time;
  }
}

/** Each record and log event has exactly one leaf, which matches it, and there is no other leaf. */
function checkEntries(leaves: readonly IndexedLeaf[], entries: readonly BookedEntry[]): void {
  const ofLeaf = new Map<number, BookedEntry>();
  for (const entry of entries) {
    const { leafIndex, kind, number, sequence, atS, content } = entry;
    const what = `${kind} ${number} ${sequence}`;
    const data = leaves[leafIndex ?? -1]?.data;
    must(
      leafIndex !== null && data !== undefined,
      number,
      `${what} has no leaf; its leaf index is ${leafIndex}`,
    );
    const other = ofLeaf.get(leafIndex);
    must(other === undefined, number, `${what} and ${other?.kind} ${other?.number} share leaf ${leafIndex}`);
    ofLeaf.set(leafIndex, entry);
    const { time } = JSON.parse(data) as { time: number };
    const expected = JSON.stringify({ ...content, kind, number, sequence, time, version: 1 });
    must(data === expected, number, `leaf ${leafIndex} does not match ${what}; it has ${kindIn(data)}`);
    must(time >= atS, number, `${what} has the time ${atS}, and its leaf ${time}`);
  }
  const spare = leaves.find(({ index }) => !ofLeaf.has(index));
  must(spare === undefined, 'world', `leaf ${spare?.index} has no record or log event`);
}

/** Formats a leaf without its commitment, whose salt differs between runs. */
function kindIn(data: string): string {
  const { kind, number, sequence } = JSON.parse(data) as Record<string, string | number>;
  return `${kind} ${number} ${sequence}`;
}

/** Sorts the members of an object by name. */
const sorted = (members: object): object =>
  Object.fromEntries(Object.entries(members).toSorted(([one], [other]) => (one < other ? -1 : 1)));

function sha256(...parts: readonly (string | Uint8Array)[]): Buffer {
  const sum = createHash('sha256');
  for (const part of parts) sum.update(part);
  return sum.digest();
}

const node = (left: Buffer = Buffer.alloc(0), right: Buffer = Buffer.alloc(0)): Buffer =>
  sha256(Buffer.of(1), left, right);
