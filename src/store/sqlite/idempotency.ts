import { deserialize, serialize } from 'node:v8';
import { and, eq, lte, sql } from 'drizzle-orm';
import { isFinal } from '../../domain/reason.ts';
import type { Instruction } from '../escrow-commands.ts';
import { type CommandResult, type IdempotencyClaim, idempotencyRetentionS, type Kind } from '../store.ts';
import { idempotencyKey as keyRow } from './schema.ts';
import { type Database, placeholders, placeholdersFor, prepare, prepareMapped } from './statement.ts';

/** Expired keys that a lookup deletes: more than one, so that they cannot pile up. */
const sweptPerLookUp = 2;

/** Commands that return an instruction, whose current state a replay returns. */
const instructing: ReadonlySet<Kind> = new Set(['OpenEscrow', 'PrepareResolution']);

/** The state of a claimed key: it belongs to another request, or this is a replay with a stored result. */
type ClaimResult =
  | { readonly kind: 'REUSED' }
  | {
      readonly kind: 'REPEATED';
      readonly outcome: CommandResult;
      readonly claimedBy: string | undefined;
    };

/**
 * Idempotency keys and the results of their calls. All methods run inside a transaction. `findInstruction` reads the current state of
 * an instruction.
 */
export function createIdempotencyKeys(
  database: Database,
  findInstruction: (instructionId: string) => Instruction | undefined,
) {
  const isKey = and(eq(keyRow.callerId, sql.placeholder('callerId')), eq(keyRow.key, sql.placeholder('key')));
  const isForgotten = lte(keyRow.claimedAtS, sql.placeholder('forgottenS'));
  const { forget, sweep, insert, update } = prepare(database, {
    forget: database.delete(keyRow).where(and(isKey, isForgotten)),
    sweep: database.delete(keyRow).where(isForgotten).orderBy(keyRow.claimedAtS).limit(sweptPerLookUp),
    insert: database.insert(keyRow).values(placeholdersFor(keyRow)),
    update: database.update(keyRow).set(placeholders('outcome')).where(isKey),
  });
  const select = prepareMapped(database.select().from(keyRow).where(isKey));

  /** The result for a replay of a call with an instruction: its current state. */
  function resultOf(instructionId: string, claimedBy: string | undefined): ClaimResult {
    const result = findInstruction(instructionId);
    if (result === undefined) throw new Error(`There is no instruction ${instructionId}.`);
    const hasEnded = result.status === 'CONFIRMED' || result.status === 'DECLINED';
    return {
      kind: 'REPEATED',
      outcome: { kind: 'DONE', result, isReplay: hasEnded },
      claimedBy,
    };
  }

  return {
    /** Looks a key up; undefined if it is free. Deletes some keys that have expired by `sweepAtS`, Unix seconds. */
    find: ({ callerId, key, fingerprint }: IdempotencyClaim, sweepAtS: number): ClaimResult | undefined => {
      const forgottenS = sweepAtS - idempotencyRetentionS;
      forget.run({ callerId, key, forgottenS });
      sweep.run({ forgottenS });
      const known = select.get({ callerId, key });
      if (known === undefined) return undefined;
      if (!known.fingerprint.equals(fingerprint)) return { kind: 'REUSED' };
      const claimedBy = known.requestId ?? undefined;
      if (known.instructionId !== null) return resultOf(known.instructionId, claimedBy);
      if (known.outcome === null) return { kind: 'REUSED' };
      return { kind: 'REPEATED', outcome: { ...deserialize(known.outcome), isReplay: true }, claimedBy };
    },
    /** Stores the result of a command for replays, if it is DONE or a final error. */
    keep: (
      { callerId, key, fingerprint, requestId }: IdempotencyClaim,
      nowS: number,
      kind: Kind,
      outcome: CommandResult,
    ) => {
      if (!isKept(outcome)) return;
      const isInstruction = outcome.kind === 'DONE' && instructing.has(kind);
      insert.run({
        ...{ callerId, key, requestId, claimedAtS: nowS, fingerprint: Buffer.from(fingerprint) },
        instructionId: isInstruction ? (outcome.result as Instruction).instructionId : null,
        outcome: isInstruction ? null : serialize(outcome),
      });
    },
    /** Replaces it by the result of a further command of the same call, on the same condition. */
    replace: ({ callerId, key }: IdempotencyClaim, outcome: CommandResult) => {
      if (isKept(outcome)) update.run({ callerId, key, outcome: serialize(outcome) });
    },
  };
}

function isKept(outcome: CommandResult): boolean {
  return outcome.kind === 'DONE' || (outcome.kind === 'REJECTED' && isFinal(outcome.apiError.reason));
}
