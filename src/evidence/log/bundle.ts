import { hash } from 'node:crypto';
import { canonicalEvidence, filingErased, recordNotFound } from '../../domain/filing.ts';
import { commitmentTo, leafVersion, recordLeafData, timeOfLeaf } from '../../domain/leaf.ts';
import { leafHash, rootOfProof } from '../../domain/merkle.ts';
import { canonicalRecord } from '../../domain/provenance.ts';
import { unavailable } from '../../domain/reason.ts';
import type { LoggedRecord, RecordName } from '../../store/evidence-commands.ts';
import type { Execute } from '../../store/store.ts';
import { readCheckpoint } from './checkpoint.ts';
import { proofText } from './proof.ts';
import type { Publication, PublishedCheckpoint } from './publication.ts';

/** What proves, without the service, that a record is in the evidence log. Its members are those of EvidenceBundle. */
export interface Bundle {
  readonly format: typeof bundleFormat;
  readonly version: typeof leafVersion;
  /** Canonical JSON. */
  readonly record: string;
  /** SHA-256 of it, 64 lower-case hex digits. */
  readonly hash: string;
  /** 64 lower-case hex digits. */
  readonly salt: string;
  /** Canonical JSON. */
  readonly leaf: string;
  /** C2SP tlog-proof. */
  readonly proof: string;
  /** What an authority stamped and covers the record; not there as long as there is nothing such. */
  readonly timeStamp?: {
    /** C2SP tlog-proof to the checkpoint that was stamped: the first that covers the record. */
    readonly proof: string;
    /** Base64 of the RFC 3161 TimeStampToken over the text of that checkpoint, DER. */
    readonly token: string;
  };
}

/** Makes bundles. */
export interface Bundles {
  /**
   * The bundle of a record, once a checkpoint covers it; `execute` reads the store, and `pause` waits for the checkpoint.
   * Throws FILING_NOT_FOUND; UNAVAILABLE where no checkpoint does in time, or too many wait for one; an Error where what is
   * stored does not prove itself.
   */
  bundleOf(named: RecordName, execute: Execute, pause?: Pause): Promise<Bundle>;
}

/** Waits as `wait` does. */
type Pause = <T>(wait: () => Promise<T>) => Promise<T>;

const bundleFormat = 'artseal-evidence';

/** How long a call waits for a checkpoint that covers its record, in milliseconds. */
const checkpointTimeoutMs = 3_000;

/** Calls that wait at the same time; what comes on top is told to come again. */
const waitingMax = 256;

/** Makes bundles to what is published. */
export function createBundles(publication: Pick<Publication, 'current' | 'covering'>): Bundles {
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
    bundleOf: async (named, execute, pause = (wait) => wait()) => {
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

/** What a record reveals of its leaf. Throws where a filing is not what its evidence hash was made of. */
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

/** The member for the first checkpoint that covers a record and was stamped; none if there is no such. */
async function timeStampOf(found: LoggedRecord, execute: Execute): Promise<Pick<Bundle, 'timeStamp'>> {
  const stamped = await execute({ kind: 'FindTimeStamp', leafIndex: found.leafIndex });
  if (stamped === undefined) return {};
  const { proof } = await proved(readCheckpoint(stamped.note, []), found, execute);
  return { timeStamp: { proof, token: Buffer.from(stamped.timeStamp).toString('base64') } };
}

/** A leaf and the proof that it is in a published tree. Throws where it is not. */
async function proved(
  { size, root, note }: PublishedCheckpoint,
  { leafIndex: index }: LoggedRecord,
  execute: Execute,
): Promise<{ readonly leaf: string; readonly proof: string }> {
  const inclusion = await execute({ kind: 'ProveInclusion', index, size });
  if (inclusion === undefined) throw new Error(`The evidence log lacks leaf ${index}, which was published.`);
  const { leaf, path } = inclusion;
  if (!Buffer.from(rootOfProof({ index, size, leaf: leafHash(leaf), path })).equals(root)) {
    throw new Error(`Leaf ${index} does not lead to the root that was published of ${size} leaves.`);
  }
  return { leaf, proof: proofText({ index, path, note }) };
}

function unproven({ filingNo, sequence }: RecordName, why: string): Error {
  return new Error(`Record ${sequence} of ${filingNo} is not what was logged: ${why}.`);
}
