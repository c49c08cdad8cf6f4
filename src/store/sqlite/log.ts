import { and, asc, desc, eq, gt, isNotNull, isNull, ne, sql } from 'drizzle-orm';
import { ApiError } from '../../domain/reason.ts';
import type { NewSeal } from '../caller-commands.ts';
import {
  type LogCommands,
  type LogKey,
  type LogNames,
  type LogState,
  logKeysMax,
  type NewLogKey,
  type StampedCheckpoint,
} from '../log-commands.ts';
import type { RecordAudit } from './audit-log.ts';
import type { Database } from './connection.ts';
import type { EvidenceLog } from './evidence-log.ts';
import { type Handlers, reads, writes } from './handlers.ts';
import { logCheckpoint, logEvent, logKey, logLeaf, logOrigin, restoration } from './schema.ts';
import { prepareRaw } from './statement.ts';

/** All keys that the log had, the newest first. */
export function logKeysIn(database: Database): readonly LogKey[] {
  const rows = database.select().from(logKey).orderBy(desc(logKey.id)).all();
  const from = announcedIn(database);
  return rows.map(({ id: _, ...key }) => ({
    ...key,
    signsFromS: from.get(key.vkey) ?? null,
    isRetired: key.sealedSeed.length === 0,
  }));
}

/** From when keys sign that were added before they did, Unix seconds: only the act of the log tells it. */
function announcedIn(database: Database): ReadonlyMap<string, number> {
  const vkey = sql<string>`${logEvent.detail} ->> 'vkey'`;
  const fromS = sql<number>`${logEvent.detail} ->> 'from'`;
  const added = and(eq(logEvent.kind, 'KEY_ADDED'), isNotNull(fromS));
  const acts = database.select({ vkey, fromS }).from(logEvent).where(added).all();
  return new Map(acts.map((act) => [act.vkey, act.fromS]));
}

/** What the log is called, in a database of any schema that has one. */
export function logNamesIn(database: Database): LogNames {
  const { origin, firstSize } = logOrigin;
  const names = database.select({ origin, firstSize }).from(logOrigin).orderBy(asc(logOrigin.id)).all();
  return { names, origin: names.at(-1)?.origin };
}

/** What the log is called, signed with and has published. */
export function logStateIn(database: Database): LogState {
  const { names, origin: inForce } = logNamesIn(database);
  const firstLine = `${inForce}\n`;
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
  const forkedBehind = fork && (JSON.parse(fork.detail) as { readonly previous: string }).previous;
  const { takenAtS } = restoration;
  const restored = database.select({ takenAtS }).from(restoration).orderBy(desc(restoration.id)).get();
  const keys = logKeysIn(database);
  return { origin: inForce, names, keys, newest, forkedBehind, restoredFromS: restored?.takenAtS };
}

/** Replaces the seal of the key with that verifier key, if it is as given; whether it was. */
export function replaceLogSeal(database: Database, { keyId, from, to }: NewSeal): boolean {
  const isAsGiven = and(eq(logKey.vkey, keyId), eq(logKey.sealedSeed, Buffer.from(from)));
  const { changes } = database
    .update(logKey)
    .set({ sealedSeed: Buffer.from(to) })
    .where(isAsGiven)
    .run();
  return changes > 0;
}

/** Handlers of what the evidence log is published under. They are called once a second at most, so nothing is prepared. */
export function createLogHandlers(
  database: Database,
  recordAudit: RecordAudit,
  log: EvidenceLog,
): Handlers<keyof LogCommands> {
  const keys = () => logKeysIn(database);
  const state = () => logStateIn(database);

  /** The log goes by that name from the leaves on that follow. */
  function addName(origin: string): void {
    const firstSize = sql<number>`(SELECT coalesce(max(${logLeaf.id}) + 1, 0) FROM ${logLeaf})`;
    database.insert(logOrigin).values({ origin, firstSize }).run();
  }

  function endKey({ vkey, endsAtS }: LogKey, atS: number): void {
    const ended = { sealedSeed: Buffer.alloc(0), endsAtS: Math.min(endsAtS ?? atS, atS) };
    database.update(logKey).set(ended).where(eq(logKey.vkey, vkey)).run();
    log.appendLogEvent('KEY_RETIRED', atS, { vkey });
  }

  const selectStamped = prepareRaw<StampedCheckpoint>(
    database,
    database
      .select({
        size: logCheckpoint.size,
        note: logCheckpoint.note,
        publishedAtS: sql<number>`${logCheckpoint.publishedAtS}`.as('publishedAtS'),
        timeStamp: sql<Buffer>`${logCheckpoint.timeStamp}`.as('timeStamp'),
      })
      .from(logCheckpoint)
      .where(
        and(
          gt(logCheckpoint.size, sql.placeholder('leafIndex')),
          isNotNull(logCheckpoint.timeStamp),
          sql`substr(${logCheckpoint.note}, 1, instr(${logCheckpoint.note}, char(10)) - 1) = (
            select ${logOrigin.origin} from ${logOrigin} order by ${logOrigin.id} desc limit 1)`,
        ),
      )
      .orderBy(asc(logCheckpoint.size))
      .limit(1),
  );

  function addKey({ vkey, sealedSeed, addedAtS }: NewLogKey, signsFromS?: number): void {
    // The time of the leaf that says so.
    const atS = Math.max(addedAtS, log.newestS() ?? addedAtS);
    const row = { vkey, sealedSeed: Buffer.from(sealedSeed), addedAtS: atS };
    database.insert(logKey).values(row).run();
    log.appendLogEvent('KEY_ADDED', atS, { vkey, ...(signsFromS !== undefined && { from: signsFromS }) });
  }

  const toldOfKeys = () => ({
    keys: keys()
      .filter(({ isRetired }) => !isRetired)
      .map(({ vkey, endsAtS }) => ({ vkey, endsAtS })),
  });

  return {
    GetLog: reads(state),
    NameLog: writes(({ origin, key }) => {
      if (database.select().from(logOrigin).get() !== undefined)
        throw new Error('The evidence log has a name already.');
      addName(origin);
      addKey(key);
      return undefined;
    }),
    ForkLog: writes(({ by, origin, key, previous }) => {
      if (state().names.some((name) => name.origin === origin))
        throw new Error(`The evidence log has had the name ${origin} already.`);
      const before = { origin: state().origin, ...toldOfKeys() };
      addName(origin);
      log.appendLogEvent('LOG_FORKED', by.atS, { origin, previous });
      for (const old of keys()) if (!old.isRetired) endKey(old, by.atS);
      addKey(key);
      // They are of the tree that was published, which this one need not begin with.
      database.delete(logCheckpoint).run();
      recordAudit(by, 'evidence fork', origin, { before, after: { origin, ...toldOfKeys() } });
      return undefined;
    }),
    RotateLogKey: writes(({ by, key, endsAtS, signsFromS }) => {
      const before = toldOfKeys();
      // Where the others end at once, because somebody else has one of them, the new one signs alone.
      if (endsAtS > by.atS && before.keys.length >= logKeysMax) throw tooManyKeys();
      database
        .update(logKey)
        .set({ endsAtS: sql`min(coalesce(${logKey.endsAtS}, ${endsAtS}), ${endsAtS})` })
        .where(ne(logKey.sealedSeed, Buffer.alloc(0)))
        .run();
      addKey(key, signsFromS);
      const after = { ...toldOfKeys(), ...(signsFromS !== undefined && { signsFromS }) };
      recordAudit(by, 'evidence rotate-key', key.vkey, { before, after });
      return undefined;
    }),
    EndLogKey: writes(({ vkey, atS }) => {
      const key = keys().find((known) => known.vkey === vkey);
      if (key === undefined || key.isRetired) return undefined;
      endKey(key, atS);
      return undefined;
    }),
    KeepCheckpoint: writes(({ size, note, publishedAtS }) => {
      database.delete(logCheckpoint).where(isNull(logCheckpoint.timeStamp)).run();
      const row = { note, publishedAtS };
      database
        .insert(logCheckpoint)
        .values({ size, ...row })
        .onConflictDoUpdate({ target: logCheckpoint.size, set: row })
        .run();
      return undefined;
    }),
    KeepTimeStamp: writes(({ size, note, publishedAtS, timeStamp }) => {
      const row = { note, timeStamp: Buffer.from(timeStamp) };
      database
        .insert(logCheckpoint)
        .values({ size, publishedAtS, ...row })
        .onConflictDoUpdate({ target: logCheckpoint.size, set: row })
        .run();
      return undefined;
    }),
    FindTimeStamp: reads(({ leafIndex }) => selectStamped.get({ leafIndex })),
  };
}

const tooManyKeys = () =>
  new ApiError(
    'VALIDATION_FAILED',
    `${logKeysMax} keys sign the evidence log already, or are to: wait until the overlap of an earlier rotation is over, or end them all with --overlap 0s.`,
  );
