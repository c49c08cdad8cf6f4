import { deserialize, serialize } from 'node:v8';
import { and, eq, lte, sql } from 'drizzle-orm';
import { isFinal } from '../../domain/reason.ts';
import type { Instruction } from '../escrow-commands.ts';
import { type CommandResult, type IdempotencyClaim, idempotencyRetentionS, type Kind } from '../store.ts';
import type { Database } from './connection.ts';
import { idempotencyKey as keyRow } from './schema.ts';
import { placeholdersFor, prepareRaw } from './statement.ts';

/** How many forgotten keys a look-up sweeps away: more than one, so that the sweep overtakes the claims. */
const sweptPerLookUp = 2;

/** Commands that give an instruction, which a repetition continues until it has ended. */
const instructing: ReadonlySet<Kind> = new Set(['OpenEscrow', 'PrepareResolution']);

/** What is known of a key: it stood for another request; or what a repetition of the same one is given. */
export type ClaimResult =
  | { readonly kind: 'REUSED' }
  | {
      readonly kind: 'REPEATED';
      readonly outcome: CommandResult;
      readonly claimedBy: string | undefined;
    };

/** Idempotency keys, each with what came of the call that claimed it. All verbs run inside a transaction. */
export interface IdempotencyKeys {
  /** What is known of a key; undefined if nothing is. What is forgotten at `sweepAtS`, Unix seconds, is swept away. */
  find(claim: IdempotencyClaim, sweepAtS: number): ClaimResult | undefined;
  /** Keeps what came of a command for repetitions, unless they could do better. */
  keep(claim: IdempotencyClaim, nowS: number, kind: Kind, outcome: CommandResult): void;
  /** Replaces what is kept by what came of a further command of the same call, unless repetitions could do better. */
  replace(claim: IdempotencyClaim, outcome: CommandResult): void;
}

/** The idempotency keys of a database; `findInstruction` reads an instruction as it is now. */
export function createIdempotencyKeys(
  database: Database,
  findInstruction: (instructionId: string) => Instruction | undefined,
): IdempotencyKeys {
  const isKey = and(eq(keyRow.callerId, sql.placeholder('callerId')), eq(keyRow.key, sql.placeholder('key')));
  const isForgotten = lte(keyRow.claimedAtS, sql.placeholder('forgottenS'));
  const forget = prepareRaw(database, database.delete(keyRow).where(and(isKey, isForgotten)));
  const sweep = prepareRaw(
    database,
    database.delete(keyRow).where(isForgotten).orderBy(keyRow.claimedAtS).limit(sweptPerLookUp),
  );
  const select = database.select().from(keyRow).where(isKey).prepare();
  const insert = prepareRaw(database, database.insert(keyRow).values(placeholdersFor(keyRow)));
  const update = prepareRaw(
    database,
    database
      .update(keyRow)
      .set({ outcome: sql`${sql.placeholder('outcome')}` })
      .where(isKey),
  );

  /** What a repetition of a call that gave an instruction is told: the instruction as it is now. */
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
    find: ({ callerId, key, fingerprint }, sweepAtS) => {
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
    keep: ({ callerId, key, fingerprint, requestId }, nowS, kind, outcome) => {
      if (!isKept(outcome)) return;
      const isInstruction = outcome.kind === 'DONE' && instructing.has(kind);
      insert.run({
        ...{ callerId, key, requestId, claimedAtS: nowS, fingerprint: Buffer.from(fingerprint) },
        instructionId: isInstruction ? (outcome.result as Instruction).instructionId : null,
        outcome: isInstruction ? null : serialize(outcome),
      });
    },
    replace: ({ callerId, key }, outcome) => {
      if (isKept(outcome)) update.run({ callerId, key, outcome: serialize(outcome) });
    },
  };
}

function isKept(outcome: CommandResult): boolean {
  return outcome.kind === 'DONE' || (outcome.kind === 'REFUSED' && isFinal(outcome.apiError.reason));
}
