/**
 * Checks evidence without trusting whoever handed it over. Runs in Node and in browsers alike, needs neither network nor
 * files, and shares no code with what writes the log.
 */
export {
  type AuditOptions,
  type AuditReport,
  type AuditState,
  auditLog,
  type SeenCheckpoint,
} from './audit.ts';
export { type Bundle, bundleLengthMax, readBundle, type TimeStamp } from './bundle.ts';
export { type Checkpoint, type LogProof, logSignersOf, readCheckpoint } from './checkpoint.ts';
export type { ContentsState, LoggedEvent, YearState } from './contents.ts';
export { attestationsOf, type Cosignature, type WitnessPolicy } from './cosignature.ts';
export { type Attestation, checkDated, clockToleranceS } from './dating.ts';
export { base64, hex, readUtf8 } from './encoding.ts';
export { type FailureKind, malformed, VerificationFailure } from './failure.ts';
export type { Finding } from './findings.ts';
export type { JsonObject, JsonValue } from './json.ts';
export type { RecordLeaf } from './leaf.ts';
export { type Note, readVerifierKey, signatureTypes, type VerifierKey } from './note.ts';
export { checkContinued, compareWithPin, type PinComparison } from './pin.ts';
export { createPublishedLog, type PublishedLog, type ReadPublished } from './published-log.ts';
export type { EvidenceRecord } from './record.ts';
export { doubtOf, type Proven, prove, type Trust, type Verdict, verdictOf, verifyBundle } from './verify.ts';
