import { hash } from 'node:crypto';
import { canonicalEvidence, filingErased, hashedMembers, recordNotFound } from '../../domain/filing.ts';
import {
  disclosuresOf,
  type HideableMember,
  hideableMembers,
  recordText,
  requireHideable,
} from '../../domain/filing-record.ts';
import { commitmentTo, recordLeafData, timeOfLeaf } from '../../domain/leaf.ts';
import { canonicalRecord } from '../../domain/provenance.ts';
import { unavailable } from '../../domain/reason.ts';
import type { LoggedRecord, RecordName } from '../../store/evidence-commands.ts';
import type { Execute } from '../../store/store.ts';
import { proofText, readCheckpoint } from '../formats/checkpoint.ts';
import { utf8 } from '../formats/encoding.ts';
import { isIncluded, leafHash } from '../formats/tree.ts';
import type { PublishedCheckpoint } from './publication.ts';
import type { Publication } from './signer.ts';

/** See `createBundles`. */
export type Bundles = ReturnType<typeof createBundles>;

/** Wraps a wait, for instance to release a limit meanwhile. */
type Pause = <T>(wait: () => Promise<T>) => Promise<T>;

interface BundleOptions {
  /** The members that the bundle discloses; all if it is undefined. */
  readonly disclose?: readonly HideableMember[] | undefined;
  /** Wraps the wait for the checkpoint. */
  readonly pause?: Pause;
}

const bundleFormat = 'artseal-evidence';

/** How long a call waits for a checkpoint, in milliseconds. */
const checkpointTimeoutMs = 3_000;

/** Calls that wait at the same time at most. */
const waitingMax = 256;

/** Makes bundles with the published checkpoints. */
export function createBundles(publication: Pick<Publication, 'current' | 'covering'>) {
  let waiting = 0;

  async function checkpointCovering(leafIndex: number, pause: Pause): Promise<PublishedCheckpoint> {
    const current = publication.current();
    if (current !== undefined && current.size > leafIndex) return current;
    if (waiting >= waitingMax) throw unavailable('Too many calls wait for the next checkpoint.');
    waiting += 1;
    try {
      const covering = await pause(() => publication.covering(leafIndex, checkpointTimeoutMs));
      if (covering !== undefined) return covering;
    } finally {
      waiting -= 1;
    }
    throw unavailable('No checkpoint of the evidence log covers the record yet.');
  }

  return {
    /**
     * Makes the bundle of a record, the members of the message EvidenceBundle, once a checkpoint covers it. Throws
     * FILING_NOT_FOUND; VALIDATION_FAILED for a record that cannot hide members; UNAVAILABLE if no checkpoint covers the record in
     * time, or too many calls wait; an Error if the stored record is not what was logged.
     */
    bundleOf: async (
      named: RecordName,
      execute: Execute,
      { disclose, pause = (wait) => wait() }: BundleOptions = {},
    ) => {
      const found = await execute({ kind: 'FindRecord', ...named });
      if (found === undefined) throw recordNotFound(named.sequence);
      const { content } = found;
      if (content === undefined) throw filingErased();
      if (disclose !== undefined) requireHideable(content.kind === 'FILING' ? content.filing : undefined);
      const { commitment, members } = opened(named, content, disclose);
      const { leaf, proof } = await proved(await checkpointCovering(found.leafIndex, pause), found, execute);
      const { filingNo: number, sequence } = named;
      const expected = { kind: content.kind, number, sequence, timeS: timeOfLeaf(leaf), commitment };
      if (leaf !== recordLeafData(expected)) throw unproven(named, 'its leaf is one of something else');
      return { format: bundleFormat, ...members, leaf, proof, ...(await timeStampOf(found, execute)) };
    },
  };
}

type Content = NonNullable<LoggedRecord['content']>;

/**
 * Hashes a record. Returns the commitment of its leaf, and the members of its bundle. Throws an Error if a filing does not have its
 * evidence hash.
 */
function opened(named: RecordName, content: Content, disclose: readonly HideableMember[] = hideableMembers) {
  const salt = Buffer.from(content.salt);
  const isFiling = content.kind === 'FILING';
  const hashed = isFiling ? canonicalEvidence(content.filing) : canonicalRecord(content.record);
  const digest = hash('sha256', hashed, 'hex');
  if (isFiling && content.filing.hash !== digest) throw unproven(named, 'its hash is another');
  if (!isFiling || content.filing.recordVersion === 1) {
    const members = { version: 1, record: hashed, hash: digest, salt: salt.toString('hex') };
    return { commitment: commitmentTo(digest, salt), members };
  }
  const { filing } = content;
  // With the evidence hash, anyone could try values of a hidden member.
  const isWhole = hideableMembers.every((name) => disclose.includes(name) || !isHashed(name));
  const record = recordText(filing, salt);
  const members = {
    version: filing.recordVersion,
    record,
    disclosed: disclosuresOf(filing, salt, disclose),
    ...(isWhole && { hash: digest }),
  };
  return { commitment: hash('sha256', record, 'hex'), members };
}

const isHashed = (name: string): boolean => (hashedMembers as readonly string[]).includes(name);

/** Makes the member timeStamp, with the first stamped checkpoint that covers a record; nothing if there is none. */
async function timeStampOf(found: LoggedRecord, execute: Execute) {
  const stamped = await execute({ kind: 'FindTimeStamp', leafIndex: found.leafIndex });
  if (stamped === undefined) return {};
  const { proof } = await proved(readCheckpoint(stamped.note, 'the stamped checkpoint'), found, execute);
  return { timeStamp: { proof, token: Buffer.from(stamped.timeStamp).toString('base64') } };
}

/** Returns a leaf and its inclusion proof in a published tree. Throws an Error if it is not included. */
async function proved(
  { size, root, note }: PublishedCheckpoint,
  { leafIndex: index }: LoggedRecord,
  execute: Execute,
): Promise<{ readonly leaf: string; readonly proof: string }> {
  const inclusion = await execute({ kind: 'ProveInclusion', index, size });
  if (inclusion === undefined) throw new Error(`The evidence log lacks leaf ${index}, which was published.`);
  const { leaf, path } = inclusion;
  if (!isIncluded(leafHash(utf8(leaf)), index, size, path, root))
    throw new Error(`Leaf ${index} is not in the tree of ${size} leaves that was published.`);
  return { leaf, proof: proofText(index, path, note) };
}

function unproven({ filingNo, sequence }: RecordName, why: string): Error {
  return new Error(`Record ${sequence} of ${filingNo} is not what was logged: ${why}.`);
}
