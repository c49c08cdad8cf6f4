/**
 * Verifies evidence without trusting its source. Runs in Node and in browsers, and needs neither network nor files. Of the
 * project it imports only ../formats.
 */

export {
  type Checkpoint,
  logSignersOf,
  readCheckpoint,
  readVerifierKey,
  signatureTypes,
  type VerifierKey,
} from '../formats/checkpoint.ts';
export { hex, readUtf8 } from '../formats/encoding.ts';
export { type FailureKind, malformed, VerificationFailure } from '../formats/failure.ts';
export { type AuditReport, type AuditState, auditLog, type SeenCheckpoint } from './audit.ts';
export { bundleTextOf } from './certificate.ts';
export type { LoggedEvent } from './contents.ts';
export type { JsonValue } from './json.ts';
export { outcomeWords } from './outcome-words.ts';
export { createPublishedLog, type PublishedLog, type ReadPublished } from './published-log.ts';
export { bundleLengthMax, readBundle } from './read-bundle.ts';
export { type RecordLeaf, readAttachments } from './record.ts';
export {
  type Attestation,
  type Cosignature,
  checkContinued,
  checkDated,
  clockToleranceS,
  instant,
  type WitnessPolicy,
} from './seen.ts';
export { doubtOf, type Proven, prove, type Trust, verifyBundle } from './verify.ts';
