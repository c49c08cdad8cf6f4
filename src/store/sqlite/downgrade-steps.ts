import Sqlite from 'better-sqlite3';
import { restoredEventsGap } from '../../domain/event.ts';
import { type LeafRow, leavesIn } from './leaves.ts';
import { DatabaseError } from './location.ts';
import { migrationNames } from './migrations.ts';

/** Rows that are read at a time: a connection that reads cannot write meanwhile. */
const rowsAtOnce = 1_000;

/**
 * What takes each migration back that came after the evidence log, by its name: it converts the rows, and loses none. Nothing
 * that was published of the log may be missing in the database of an earlier version.
 */
const waysBack: Readonly<Record<string, (client: Sqlite.Database, openUrl: OpenUrl) => void>> = {
  '0015_leaf_rows': splitRows,
  '0016_events_and_webhooks': dropEvents,
  '0017_ends_by_operator': dropMarks,
  '0018_sealed_urls_links_and_caps': unsealUrls,
};

/** Opens the sealed URL of an endpoint. Throws an Error if the master key does not open it. */
export type OpenUrl = (webhook: { readonly webhookId: string; readonly sealedUrl: Uint8Array }) => string;

/**
 * Converts a database to an earlier schema that has an evidence log as well. Throws DatabaseError for a damaged one, and what
 * `openUrl` throws.
 */
export function takeBack(file: string, schema: number, openUrl: OpenUrl): void {
  const client = new Sqlite(file, { fileMustExist: true });
  try {
    client.transaction(() => {
      for (const name of migrationNames().slice(schema).toReversed()) {
        const back = waysBack[name];
        if (back === undefined) throw new Error(`Nothing takes ${name} back.`);
        back(client, openUrl);
      }
      client.pragma(`user_version = ${schema}`);
    })();
  } finally {
    client.close();
  }
}

/** Stores the URLs of endpoints as plain text again. Drops links to evidence, which then open nothing, and the caps on filings. */
function unsealUrls(client: Sqlite.Database, openUrl: OpenUrl): void {
  const sealed = client
    .prepare<[], { webhookId: string; sealedUrl: Uint8Array }>(
      'SELECT webhook_id AS webhookId, sealed_url AS sealedUrl FROM webhook WHERE sealed_url IS NOT NULL',
    )
    .all();
  const update = client.prepare('UPDATE webhook SET url = ? WHERE webhook_id = ?');
  for (const webhook of sealed) update.run(openUrl(webhook), webhook.webhookId);
  client.exec('DROP TABLE evidence_link; DROP INDEX caller_capped; DROP TRIGGER filing_is_latest');
  const added = {
    webhook: 'sealed_url',
    deployment: 'plain_urls',
    caller: 'filing_cap',
    latest_filing: 'filings',
  };
  for (const [table, column] of Object.entries(added))
    client.exec(`ALTER TABLE ${table} DROP COLUMN ${column}`);
  client.exec(latestTrigger);
}

/** Drops what marks the states that a person decided; the log of acts still has who decided them. */
function dropMarks(client: Sqlite.Database): void {
  client.exec('ALTER TABLE escrow_change DROP COLUMN by_operator');
}

/** Drops events and endpoints, which no earlier version has. */
function dropEvents(client: Sqlite.Database): void {
  for (const table of ['webhook_delivery', 'webhook', 'event_mark', 'event_head', 'event_log'])
    client.exec(`DROP TABLE ${table}`);
  client.exec('ALTER TABLE deployment DROP COLUMN newest_webhook');
  client.exec('ALTER TABLE escrow DROP COLUMN told_hold_end_s');
}

/**
 * Keeps in the header of an earlier database where its events are to go on once it is upgraded again: behind all places of the later
 * one, so that no place, and no id, is given to two of them.
 */
export function keepEventPlaces(later: string, earlier: string): void {
  const millions = onDatabase(later, (client) => {
    const hasEvents = Number(client.pragma('user_version', { simple: true })) >= eventSchema;
    if (!hasEvents) return Number(client.pragma('application_id', { simple: true }));
    const last = client.prepare<[], number>('SELECT max(sequence) FROM event_head').pluck().get() ?? 0;
    return Math.floor(last / restoredEventsGap) + 1;
  });
  onDatabase(earlier, (client) => client.pragma(`application_id = ${millions}`));
}

function onDatabase<T>(file: string, work: (client: Sqlite.Database) => T): T {
  // Not read-only: the last connection that may write removes the log, which would look like somebody else's.
  const client = new Sqlite(file, { fileMustExist: true });
  try {
    return work(client);
  } finally {
    client.close();
  }
}

/** The schema from which on there are events. */
const eventSchema = 17;

/** Gives each leaf a row of its own, in the table of schema 15. */
function splitRows(client: Sqlite.Database): void {
  // They would go with the table and keep their names.
  for (const trigger of ['never_changes', 'follows', 'is_kept'])
    client.exec(`DROP TRIGGER log_leaf_${trigger}`);
  client.exec('ALTER TABLE log_leaf RENAME TO shared');
  client.exec(leafTable);
  const select = client.prepare<[number, number], LeafRow>(
    'SELECT * FROM shared WHERE id > ? ORDER BY id LIMIT ?',
  );
  const insert = client.prepare('INSERT INTO log_leaf (id, data, hashes) VALUES (?, ?, ?)');
  let rows = select.all(-1, rowsAtOnce);
  while (rows.length > 0) {
    for (const row of rows)
      for (const { index, data, hashes } of requireLeaves(row)) insert.run(index, data, hashes);
    rows = select.all(rows.at(-1)?.id ?? 0, rowsAtOnce);
  }
  client.exec('DROP TABLE shared');
}

function requireLeaves(row: LeafRow) {
  const leaves = leavesIn(row);
  if (leaves === undefined)
    throw new DatabaseError(
      `leaves up to ${row.id} of the evidence log are not what was written: see docs/operate/incidents/record-changed.md.`,
    );
  return leaves;
}

/** As 0014_transparency_log made it. */
const leafTable = `
CREATE TABLE \`log_leaf\` (
	\`id\` integer PRIMARY KEY NOT NULL,
	\`data\` text NOT NULL,
	\`hashes\` blob NOT NULL
) STRICT;
CREATE TRIGGER \`log_leaf_never_changes\` BEFORE UPDATE ON \`log_leaf\`
BEGIN SELECT RAISE(ABORT, 'a leaf of the log never changes'); END;
CREATE TRIGGER \`log_leaf_never_replaced\` BEFORE INSERT ON \`log_leaf\`
BEGIN SELECT RAISE(ABORT, 'a leaf of the log is never replaced') FROM \`log_leaf\` WHERE \`id\` = NEW.\`id\`; END;
CREATE TRIGGER \`log_leaf_is_kept\` BEFORE DELETE ON \`log_leaf\`
BEGIN SELECT RAISE(ABORT, 'a leaf of the log is kept'); END;`;

/** As 0009_filing_chains made it. */
const latestTrigger = `
CREATE TRIGGER \`filing_is_latest\` AFTER INSERT ON \`filing\`
BEGIN
  INSERT INTO \`latest_filing\` VALUES (NEW.\`caller_id\`, CAST(substr(NEW.\`filing_no\`, 4, 4) AS integer), NEW.\`id\`)
  ON CONFLICT DO UPDATE SET \`filing_id\` = iif(
    \`filing_id\` IS NEW.\`previous_id\`, NEW.\`id\`, RAISE(ABORT, 'a filing names the one before it')
  );
END;`;
