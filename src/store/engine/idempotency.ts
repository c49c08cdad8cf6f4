import { deserialize, serialize } from 'node:v8';
import type { InferSelectModel } from 'drizzle-orm';
import { isFinal } from '../../domain/reason.ts';
import type { Instruction } from '../escrow-commands.ts';
import type { CommandResult, IdempotencyClaim, Kind } from '../store.ts';
import type { idempotencyKey } from './schema.ts';

/** Commands that return an instruction, whose current state a replay returns. */
const instructing: ReadonlySet<Kind> = new Set(['OpenEscrow', 'PrepareResolution']);

/** A row of a claimed key. */
export type ClaimedKey = InferSelectModel<typeof idempotencyKey>;

/**
 * The state of a claimed key: it belongs to another request, or this is a replay with a stored result or with an instruction, whose
 * current state is the result.
 */
export type ClaimResult =
  | { readonly kind: 'REUSED' }
  | {
      readonly kind: 'INSTRUCTED';
      readonly instructionId: string;
      readonly claimedBy: string | undefined;
    }
  | {
      readonly kind: 'REPEATED';
      readonly outcome: CommandResult;
      readonly claimedBy: string | undefined;
    };

/** What a claim finds under its key. */
export function resultOfClaim(
  { fingerprint: claimed, requestId, instructionId, outcome }: ClaimedKey,
  { fingerprint }: IdempotencyClaim,
): ClaimResult {
  if (!claimed.equals(fingerprint)) return { kind: 'REUSED' };
  const claimedBy = requestId ?? undefined;
  if (instructionId !== null) return { kind: 'INSTRUCTED', instructionId, claimedBy };
  if (outcome === null) return { kind: 'REUSED' };
  return { kind: 'REPEATED', outcome: { ...deserialize(outcome), isReplay: true }, claimedBy };
}

/** The row that keeps the result of a command for replays; undefined unless it is DONE or a final error. */
export function claimedKey(
  { callerId, key, fingerprint, requestId }: IdempotencyClaim,
  nowS: number,
  kind: Kind,
  outcome: CommandResult,
): ClaimedKey | undefined {
  if (!isKept(outcome)) return undefined;
  const isInstruction = outcome.kind === 'DONE' && instructing.has(kind);
  return {
    ...{ callerId, key, requestId, claimedAtS: nowS, fingerprint: Buffer.from(fingerprint) },
    instructionId: isInstruction ? (outcome.result as Instruction).instructionId : null,
    outcome: isInstruction ? null : serialize(outcome),
  };
}

/** The result that replaces that of an earlier command of the same call, serialised; undefined on the same condition. */
export const replacedOutcome = (outcome: CommandResult): Buffer | undefined =>
  isKept(outcome) ? serialize(outcome) : undefined;

function isKept(outcome: CommandResult): boolean {
  return outcome.kind === 'DONE' || (outcome.kind === 'REJECTED' && isFinal(outcome.apiError.reason));
}
