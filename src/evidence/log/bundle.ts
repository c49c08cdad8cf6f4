import { hash } from 'node:crypto';
import { canonicalEvidence, filingErased, recordNotFound } from '../../domain/filing.ts';
import { commitmentTo, leafVersion, recordLeafData, timeOfLeaf } from '../../domain/leaf.ts';
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
     * Makes the bundle of a record, the members of the message EvidenceBundle, once a checkpoint covers it. `execute` reads the
     * store, and `pause` wraps the wait for the checkpoint. Throws FILING_NOT_FOUND; UNAVAILABLE if no checkpoint covers the record in time, or too many calls wait; an
     * Error if the stored record is not what was logged.
     */
    bundleOf: async (named: RecordName, execute: Execute, pause: Pause = (wait) => wait()) => {
      const found = await execute({ kind: 'FindRecord', ...named });
      if (found === undefined) throw recordNotFound(named.sequence);
      if (found.content === undefined) throw filingErased();
      const { record, hash, salt, leafOf } = opened(named, found.content);
      const { leaf, proof } = await proved(await checkpointCovering(found.leafIndex, pause), found, execute);
      if (leaf !== leafOf(timeOfLeaf(leaf))) throw unproven(named, 'its leaf is one of something else');
      return {
        ...{ format: bundleFormat, version: leafVersion, record, hash },
        ...{ salt: Buffer.from(salt).toString('hex'), leaf, proof },
        ...(await timeStampOf(found, execute)),
      };
    },
  };
}

/** Hashes a record, and returns what its leaf has to be. Throws an Error if a filing does not have its evidence hash. */
function opened(named: RecordName, content: NonNullable<LoggedRecord['content']>) {
  const { kind, salt } = content;
  const record = kind === 'FILING' ? canonicalEvidence(content.filing) : canonicalRecord(content.record);
  const digest = hash('sha256', record, 'hex');
  if (kind === 'FILING' && content.filing.hash !== digest) throw unproven(named, 'its hash is another');
  const { filingNo: number, sequence } = named;
  const commitment = commitmentTo(digest, salt);
  const leafOf = (timeS: number) => recordLeafData({ kind, number, sequence, timeS, commitment });
  return { record, hash: digest, salt, leafOf };
}

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
