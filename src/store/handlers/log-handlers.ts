import { and, asc, desc, eq, gt, type InferInsertModel, isNotNull, isNull, lt, ne, sql } from 'drizzle-orm';
import { ApiError } from '../../domain/reason.ts';
import { type Handlers, reads, writes } from '../engine/handlers.ts';
import { logCheckpoint, logEvent, logKey, logOrigin, restoration } from '../engine/schema.ts';
import { choose, type Database, named, prepare } from '../engine/statement.ts';
import {
  type KeptCheckpoint,
  type LogCommands,
  type LogKey,
  type LogNames,
  type LogState,
  logKeysMax,
  type NewLogKey,
} from '../log-commands.ts';
import type { Parts } from './parts.ts';

/** All keys of the log, the newest first. */
async function logKeysIn(database: Database): Promise<readonly LogKey[]> {
  const rows = await database.select().from(logKey).orderBy(desc(logKey.id)).all();
  const from = await announcedIn(database);
  return rows.map(({ id: _, ...key }) => ({
    ...key,
    signsFromS: from.get(key.vkey) ?? null,
    isRetired: key.sealedSeed.length === 0,
  }));
}

/** When keys that were added in advance begin to sign, Unix seconds. Only their log event says it. */
async function announcedIn(database: Database): Promise<ReadonlyMap<string, number>> {
  const vkey = sql<string>`${logEvent.detail} ->> 'vkey'`;
  const fromS = sql`${logEvent.detail} ->> 'from'`.mapWith(Number);
  const added = and(eq(logEvent.kind, 'KEY_ADDED'), isNotNull(fromS));
  const events = await database.select({ vkey, fromS }).from(logEvent).where(added).all();
  return new Map(events.map((event) => [event.vkey, event.fromS]));
}

/** The origins of the log, in a database of any schema. */
export async function logNamesIn(database: Database): Promise<LogNames> {
  const { origin, firstSize } = logOrigin;
  const names = await database.select({ origin, firstSize }).from(logOrigin).orderBy(asc(logOrigin.id)).all();
  return { names, origin: names.at(-1)?.origin };
}

/** The newest published checkpoint under an origin. */
async function newestCheckpointIn(database: Database, origin: string): Promise<KeptCheckpoint | undefined> {
  const { size, note, publishedAtS } = logCheckpoint;
  const firstLine = `${origin}\n`;
  return database
    .select({ size, note, publishedAtS })
    .from(logCheckpoint)
    .where(sql`substr(${note}, 1, length(${firstLine})) = ${firstLine}`)
    .orderBy(desc(size))
    .limit(1)
    .get();
}

/** The origins, keys and published checkpoint of the log. */
export async function logStateIn(database: Database): Promise<LogState> {
  const { names, origin } = await logNamesIn(database);
  const newest = origin === undefined ? undefined : await newestCheckpointIn(database, origin);
  const fork = await database
    .select({ detail: logEvent.detail })
    .from(logEvent)
    .where(eq(logEvent.kind, 'LOG_FORKED'))
    .orderBy(desc(logEvent.sequence))
    .limit(1)
    .get();
  const forkedAfter = fork && (JSON.parse(fork.detail) as { readonly previous: string }).previous;
  const { takenAtS, restoredAtS } = restoration;
  const restored = await database
    .select({ takenAtS, restoredAtS })
    .from(restoration)
    .orderBy(desc(restoration.id))
    .limit(1)
    .get();
  const keys = await logKeysIn(database);
  const times = { restoredFromS: restored?.takenAtS, restoredAtS: restored?.restoredAtS };
  return { origin, names, keys, newest, forkedAfter, ...times };
}

/** Handlers of origins, keys and checkpoints of the evidence log. They run once a second at most, so most are not prepared. */
export function createLogHandlers({ database, recordAudit, log }: Parts): Handlers<keyof LogCommands> {
  const keys = () => logKeysIn(database);

  /** Gives the log an origin from the next leaf on. */
  async function addOrigin(origin: string): Promise<void> {
    const firstSize = await log.read(({ leaves }) => leaves.size());
    await database.insert(logOrigin).values({ origin, firstSize }).run();
  }

  async function endKey({ vkey, endsAtS }: LogKey, atS: number): Promise<void> {
    const ended = { sealedSeed: Buffer.alloc(0), endsAtS: Math.min(endsAtS ?? atS, atS) };
    await database.update(logKey).set(ended).where(eq(logKey.vkey, vkey)).run();
    await log.appendLogEvent('KEY_RETIRED', atS, { vkey });
  }

  async function addKey({ vkey, sealedSeed, addedAtS }: NewLogKey, signsFromS?: number): Promise<void> {
    // The time of its leaf.
    const atS = Math.max(addedAtS, (await log.newestS()) ?? addedAtS);
    const row = { vkey, sealedSeed: Buffer.from(sealedSeed), addedAtS: atS };
    await database.insert(logKey).values(row).run();
    const from = signsFromS !== undefined && { from: signsFromS };
    await log.appendLogEvent('KEY_ADDED', atS, { vkey, ...from });
  }

  async function signing() {
    const all = await keys();
    const kept = all.filter(({ isRetired }) => !isRetired);
    return { keys: kept.map(({ vkey, endsAtS }) => ({ vkey, endsAtS })) };
  }

  return {
    GetLog: reads(() => logStateIn(database)),
    ...createCheckpointHandlers(database),
    NameLog: writes(async ({ origin, key }) => {
      if ((await logNamesIn(database)).origin !== undefined) return undefined;
      await addOrigin(origin);
      await addKey(key);
      return undefined;
    }),
    ForkLog: writes(async ({ by, origin, key, previous }) => {
      const known = await logNamesIn(database);
      if (known.names.some((name) => name.origin === origin))
        throw new Error(`The evidence log has had the name ${origin} already.`);
      const before = { origin: known.origin, ...(await signing()) };
      await addOrigin(origin);
      await log.appendLogEvent('LOG_FORKED', by.atS, { origin, previous });
      for (const old of await keys()) if (!old.isRetired) await endKey(old, by.atS);
      await addKey(key);
      // They are of the published tree, and this one may not begin with it.
      await database.delete(logCheckpoint).run();
      await recordAudit(by, 'evidence fork', origin, { before, after: { origin, ...(await signing()) } });
      return undefined;
    }),
    RotateLogKey: writes(async ({ by, key, endsAtS, signsFromS }) => {
      const before = await signing();
      // If the others end at once, because a key has leaked, the new key signs alone.
      if (endsAtS > by.atS && before.keys.length >= logKeysMax) throw tooManyKeys();
      await database
        .update(logKey)
        .set({ endsAtS: choose(lt(logKey.endsAtS, endsAtS), logKey.endsAtS, endsAtS) })
        .where(ne(logKey.sealedSeed, Buffer.alloc(0)))
        .run();
      await addKey(key, signsFromS);
      const after = { ...(await signing()), ...(signsFromS !== undefined && { signsFromS }) };
      await recordAudit(by, 'evidence rotate-key', key.vkey, { before, after });
      return { vkey: key.vkey, endsAtS };
    }),
    EndLogKey: writes(async ({ vkey, atS }) => {
      const key = (await keys()).find((known) => known.vkey === vkey);
      if (key === undefined || key.isRetired) return undefined;
      await endKey(key, atS);
      return undefined;
    }),
  };
}

/** Handlers of published checkpoints. */
function createCheckpointHandlers(
  database: Database,
): Handlers<'KeepCheckpoint' | 'KeepTimeStamp' | 'FindTimeStamp'> {
  const { size, note, publishedAtS, timeStamp } = logCheckpoint;
  const origin = sql`(SELECT ${logOrigin.origin} FROM ${logOrigin} ORDER BY ${logOrigin.id} DESC LIMIT 1)`;
  const { selectStamped } = prepare(database, {
    selectStamped: database
      .select(named({ size, note, publishedAtS, timeStamp: sql<Buffer>`${timeStamp}` }))
      .from(logCheckpoint)
      .where(
        and(
          gt(size, sql.placeholder('leafIndex')),
          isNotNull(timeStamp),
          sql`substr(${note}, 1, length(${origin}) + 1) = ${origin} || ${'\n'}`,
        ),
      )
      .orderBy(asc(size))
      .limit(1),
  });

  /** Inserts a checkpoint, or changes the one of that size. */
  async function keepCheckpoint(
    row: InferInsertModel<typeof logCheckpoint>,
    set: Partial<typeof row>,
  ): Promise<void> {
    await database.insert(logCheckpoint).values(row).onConflictDoUpdate({ target: size, set }).run();
  }

  return {
    KeepCheckpoint: writes(async ({ size, note, publishedAtS }) => {
      const { origin: current } = await logNamesIn(database);
      if (current === undefined || !note.startsWith(`${current}\n`)) return false;
      const newest = await newestCheckpointIn(database, current);
      if (newest !== undefined && newest.size >= size) return newest.note === note;
      await database.delete(logCheckpoint).where(isNull(logCheckpoint.timeStamp)).run();
      await keepCheckpoint({ size, note, publishedAtS }, { note, publishedAtS });
      return true;
    }),
    KeepTimeStamp: writes(async ({ size, note, publishedAtS, ...stamped }) => {
      const timeStamp = Buffer.from(stamped.timeStamp);
      await keepCheckpoint({ size, note, publishedAtS, timeStamp }, { note, timeStamp });
      return undefined;
    }),
    FindTimeStamp: reads(({ leafIndex }) => selectStamped.get({ leafIndex })),
  };
}

const tooManyKeys = () =>
  new ApiError(
    'VALIDATION_FAILED',
    `${logKeysMax} keys sign the evidence log or are going to: wait until the overlap of an earlier rotation has ended, or end them all with --overlap 0s.`,
  );
