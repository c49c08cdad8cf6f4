import type Sqlite from 'better-sqlite3';

/** How many notifications wait at most; beyond that the oldest is lost, as notifications may be. */
const waitingMax = 10_000;

/** A notification that has not been delivered. */
export interface WaitingNotification {
  /** Its place among all notifications ever, from 1. */
  readonly id: number;
  readonly holdId: string;
  /** How often its delivery has failed. */
  readonly failures: number;
}

/** The notifications of the books that have not been delivered. */
export interface Outbox {
  /** Adds a notification that something has happened to a hold. Runs inside the transaction of the change. */
  add(holdId: string): void;
  /** Those with a higher id, in their order. */
  after(id: number): WaitingNotification[];
  /** Whether one still waits. */
  has(id: number): boolean;
  countFailure(id: number): void;
  remove(id: number): void;
}

/** Prepares the statements of the outbox. */
export function createOutbox(connection: Sqlite.Database): Outbox {
  const insert = connection.prepare('INSERT INTO notification (hold_id) VALUES (?)');
  const drop = connection.prepare('DELETE FROM notification WHERE id <= ?');
  const select = connection.prepare<[number], WaitingNotification>(
    'SELECT id, hold_id AS holdId, failures FROM notification WHERE id > ? ORDER BY id',
  );
  const selectOne = connection.prepare<[number], unknown>('SELECT 1 FROM notification WHERE id = ?');
  const update = connection.prepare('UPDATE notification SET failures = failures + 1 WHERE id = ?');
  const remove = connection.prepare('DELETE FROM notification WHERE id = ?');
  return {
    add: (holdId) => {
      const { lastInsertRowid } = insert.run(holdId);
      drop.run(Number(lastInsertRowid) - waitingMax);
    },
    after: (id) => select.all(id),
    has: (id) => selectOne.get(id) !== undefined,
    countFailure: (id) => {
      update.run(id);
    },
    remove: (id) => {
      remove.run(id);
    },
  };
}
