import { and, asc, desc, eq, gt, type InferInsertModel, isNotNull, isNull, ne, sql } from 'drizzle-orm';
import { ApiError } from '../../domain/reason.ts';
import type { NewSeal } from '../caller-commands.ts';
import {
  type LogCommands,
  type LogKey,
  type LogNames,
  type LogState,
  logKeysMax,
  type NewLogKey,
} from '../log-commands.ts';
import { type Handlers, reads, writes } from './handlers.ts';
import type { Parts } from './parts.ts';
import { logCheckpoint, logEvent, logKey, logLeaf, logOrigin, restoration } from './schema.ts';
import { type Database, named, prepare } from './statement.ts';

/** All keys of the log, the newest first. */
function logKeysIn(database: Database): readonly LogKey[] {
  const rows = database.select().from(logKey).orderBy(desc(logKey.id)).all();
  const from = announcedIn(database);
  return rows.map(({ id: _, ...key }) => ({
    ...key,
    signsFromS: from.get(key.vkey) ?? null,
    isRetired: key.sealedSeed.length === 0,
  }));
}

/** When keys that were added in advance begin to sign, Unix seconds. Only their log event says it. */
function announcedIn(database: Database): ReadonlyMap<string, number> {
  const vkey = sql<string>`${logEvent.detail} ->> 'vkey'`;
  const fromS = sql<number>`${logEvent.detail} ->> 'from'`;
  const added = and(eq(logEvent.kind, 'KEY_ADDED'), isNotNull(fromS));
  const events = database.select({ vkey, fromS }).from(logEvent).where(added).all();
  return new Map(events.map((event) => [event.vkey, event.fromS]));
}

/** The origins of the log, in a database of any schema. */
export function logNamesIn(database: Database): LogNames {
  const { origin, firstSize } = logOrigin;
  const names = database.select({ origin, firstSize }).from(logOrigin).orderBy(asc(logOrigin.id)).all();
  return { names, origin: names.at(-1)?.origin };
}

/** The origins, keys and published checkpoint of the log. */
export function logStateIn(database: Database): LogState {
  const { names, origin } = logNamesIn(database);
  const firstLine = `${origin}\n`;
  const { size, note, publishedAtS } = logCheckpoint;
  const newest = database
    .select({ size, note, publishedAtS })
    .from(logCheckpoint)
    .where(sql`substr(${note}, 1, length(${firstLine})) = ${firstLine}`)
    .orderBy(desc(size))
    .limit(1)
    .get();
  const fork = database
    .select({ detail: logEvent.detail })
    .from(logEvent)
    .where(eq(logEvent.kind, 'LOG_FORKED'))
    .orderBy(desc(logEvent.sequence))
    .limit(1)
    .get();
  const forkedAfter = fork && (JSON.parse(fork.detail) as { readonly previous: string }).previous;
  const { takenAtS } = restoration;
  const restored = database.select({ takenAtS }).from(restoration).orderBy(desc(restoration.id)).get();
  const keys = logKeysIn(database);
  return { origin, names, keys, newest, forkedAfter, restoredFromS: restored?.takenAtS };
}

/** Replaces the ciphertext of the key with that verifier key if it is as given. Returns whether it was. */
export function replaceLogSeal(database: Database, { keyId, from, to }: NewSeal): boolean {
  const isAsGiven = and(eq(logKey.vkey, keyId), eq(logKey.sealedSeed, Buffer.from(from)));
  const { changes } = database
    .update(logKey)
    .set({ sealedSeed: Buffer.from(to) })
    .where(isAsGiven)
    .run();
  return changes > 0;
}

/** Handlers of origins, keys and checkpoints of the evidence log. They run once a second at most, so most are not prepared. */
export function createLogHandlers({ database, recordAudit, log }: Parts): Handlers<keyof LogCommands> {
  const { selectStamped } = prepareStamped(database);
  const keys = () => logKeysIn(database);
  const state = () => logStateIn(database);

  /** Gives the log an origin from the next leaf on. */
  function addOrigin(origin: string): void {
    const firstSize = sql<number>`(SELECT coalesce(max(${logLeaf.id}) + 1, 0) FROM ${logLeaf})`;
    database.insert(logOrigin).values({ origin, firstSize }).run();
  }

  /** Inserts a checkpoint, or changes the one of that size. */
  function keepCheckpoint(row: InferInsertModel<typeof logCheckpoint>, set: Partial<typeof row>): void {
    const target = logCheckpoint.size;
    database.insert(logCheckpoint).values(row).onConflictDoUpdate({ target, set }).run();
  }

  function endKey({ vkey, endsAtS }: LogKey, atS: number): void {
    const ended = { sealedSeed: Buffer.alloc(0), endsAtS: Math.min(endsAtS ?? atS, atS) };
    database.update(logKey).set(ended).where(eq(logKey.vkey, vkey)).run();
    log.appendLogEvent('KEY_RETIRED', atS, { vkey });
  }

  function addKey({ vkey, sealedSeed, addedAtS }: NewLogKey, signsFromS?: number): void {
    // The time of its leaf.
    const atS = Math.max(addedAtS, log.newestS() ?? addedAtS);
    const row = { vkey, sealedSeed: Buffer.from(sealedSeed), addedAtS: atS };
    database.insert(logKey).values(row).run();
    log.appendLogEvent('KEY_ADDED', atS, { vkey, ...(signsFromS !== undefined && { from: signsFromS }) });
  }

  const signing = () => ({
    keys: keys()
      .filter(({ isRetired }) => !isRetired)
      .map(({ vkey, endsAtS }) => ({ vkey, endsAtS })),
  });

  return {
    GetLog: reads(state),
    NameLog: writes(({ origin, key }) => {
      if (database.select().from(logOrigin).get() !== undefined)
        throw new Error('The evidence log has a name already.');
      addOrigin(origin);
      addKey(key);
      return undefined;
    }),
    ForkLog: writes(({ by, origin, key, previous }) => {
      if (state().names.some((name) => name.origin === origin))
        throw new Error(`The evidence log has had the name ${origin} already.`);
      const before = { origin: state().origin, ...signing() };
      addOrigin(origin);
      log.appendLogEvent('LOG_FORKED', by.atS, { origin, previous });
      for (const old of keys()) if (!old.isRetired) endKey(old, by.atS);
      addKey(key);
      // They are of the published tree, and this one may not begin with it.
      database.delete(logCheckpoint).run();
      recordAudit(by, 'evidence fork', origin, { before, after: { origin, ...signing() } });
      return undefined;
    }),
    RotateLogKey: writes(({ by, key, endsAtS, signsFromS }) => {
      const before = signing();
      // If the others end at once, because a key has leaked, the new key signs alone.
      if (endsAtS > by.atS && before.keys.length >= logKeysMax) throw tooManyKeys();
      database
        .update(logKey)
        .set({ endsAtS: sql`min(coalesce(${logKey.endsAtS}, ${endsAtS}), ${endsAtS})` })
        .where(ne(logKey.sealedSeed, Buffer.alloc(0)))
        .run();
      addKey(key, signsFromS);
      const after = { ...signing(), ...(signsFromS !== undefined && { signsFromS }) };
      recordAudit(by, 'evidence rotate-key', key.vkey, { before, after });
      return { vkey: key.vkey, endsAtS };
    }),
    EndLogKey: writes(({ vkey, atS }) => {
      const key = keys().find((known) => known.vkey === vkey);
      if (key === undefined || key.isRetired) return undefined;
      endKey(key, atS);
      return undefined;
    }),
    KeepCheckpoint: writes(({ size, note, publishedAtS }) => {
      database.delete(logCheckpoint).where(isNull(logCheckpoint.timeStamp)).run();
      keepCheckpoint({ size, note, publishedAtS }, { note, publishedAtS });
      return undefined;
    }),
    KeepTimeStamp: writes(({ size, note, publishedAtS, ...stamped }) => {
      const timeStamp = Buffer.from(stamped.timeStamp);
      keepCheckpoint({ size, note, publishedAtS, timeStamp }, { note, timeStamp });
      return undefined;
    }),
    FindTimeStamp: reads(({ leafIndex }) => selectStamped.get({ leafIndex })),
  };
}

/** Prepares the query of the first checkpoint with a time stamp that has a leaf. */
function prepareStamped(database: Database) {
  const { size, note, publishedAtS, timeStamp } = logCheckpoint;
  return prepare(database, {
    selectStamped: database
      .select(named({ size, note, publishedAtS, timeStamp: sql<Buffer>`${timeStamp}` }))
      .from(logCheckpoint)
      .where(
        and(
          gt(size, sql.placeholder('leafIndex')),
          isNotNull(timeStamp),
          sql`substr(${note}, 1, instr(${note}, char(10)) - 1) = (
            select ${logOrigin.origin} from ${logOrigin} order by ${logOrigin.id} desc limit 1)`,
        ),
      )
      .orderBy(asc(size))
      .limit(1),
  });
}

const tooManyKeys = () =>
  new ApiError(
    'VALIDATION_FAILED',
    `${logKeysMax} keys sign the evidence log or are going to: wait until the overlap of an earlier rotation has ended, or end them all with --overlap 0s.`,
  );
