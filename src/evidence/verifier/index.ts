/**
 * Verifies evidence without trusting its source. Runs in Node and in browsers, and needs neither network nor files. Of the
 * project it imports only ../formats.
 */

export { type Checkpoint, logSignersOf, readCheckpoint } from '../formats/checkpoint.ts';
export { base64, hex, readUtf8 } from '../formats/encoding.ts';
export { type FailureKind, malformed, VerificationFailure } from '../formats/failure.ts';
export { readVerifierKey, signatureTypes, type VerifierKey } from '../formats/note.ts';
export {
  type AuditOptions,
  type AuditReport,
  type AuditState,
  auditLog,
  type SeenCheckpoint,
} from './audit.ts';
export { type Bundle, bundleLengthMax, readBundle, type TimeStamp } from './bundle.ts';
export type { ContentsState, LoggedEvent } from './contents.ts';
export { attestationsOf, type Cosignature, type WitnessPolicy } from './cosignature.ts';
export { type Attestation, checkDated, clockToleranceS, instant } from './dating.ts';
export type { Finding } from './findings.ts';
export type { JsonObject, JsonValue } from './json.ts';
export type { RecordLeaf } from './leaf.ts';
export { checkContinued, compareWithPin, type PinComparison } from './pin.ts';
export { createPublishedLog, type PublishedLog, type ReadPublished } from './published-log.ts';
export type { EvidenceRecord } from './record.ts';
export { doubtOf, type Proven, prove, type Trust, type Verdict, verdictOf, verifyBundle } from './verify.ts';
