import type Sqlite from 'better-sqlite3';
import type { PaymentSnapshot, PaymentStatus } from '../../domain/payment.ts';

/** A hold in the books; a VOID one is a tombstone, and has neither amount nor end. */
export interface SimulatedHold {
  readonly holdId: string;
  readonly escrowId: string;
  readonly status: Exclude<PaymentStatus, 'ABSENT'>;
  /** What is, was or will be held; of PARTLY_RETURNED what the seller still has. */
  readonly amount: bigint | undefined;
  readonly currency: string | undefined;
  /** Unix milliseconds; undefined where it does not run out, or is not made yet. */
  readonly expiresAtMs: number | undefined;
}

/** The end of a hold that never runs out, Unix milliseconds. */
export const neverMs = Number.MAX_SAFE_INTEGER;

/** A hold to make, or that waits for its buyer. */
export interface NewHold {
  readonly holdId: string;
  readonly escrowId: string;
  readonly amount: bigint;
  readonly currency: string;
}

/** A hold that waits for its buyer. */
export interface AwaitedHold extends NewHold {
  /** How long it lasts once it is made, in milliseconds; Infinity for ever. */
  readonly lastsMs: number;
}

/** The holds in the books. All verbs that write run inside the transaction of a change. */
export interface HoldRows {
  find(holdId: string): SimulatedHold | undefined;
  /** Where the money of an order is. */
  snapshot(holdId: string): PaymentSnapshot;
  /** All of them in the order in which they were made, those that wait for their buyer last. */
  all(): SimulatedHold[];
  make(hold: NewHold, status: 'HELD' | 'PAID_OUT', expiresAtMs: number): void;
  bury(hold: Pick<NewHold, 'holdId' | 'escrowId'>): void;
  /** Writes down that a hold waits for its buyer. */
  await(hold: AwaitedHold): void;
  /** Takes one off those that wait. */
  takeAwaited(holdId: string): AwaitedHold | undefined;
  move(holdId: string, status: 'PAID_OUT' | 'RETURNED' | 'LAPSED'): void;
  /** Makes a tombstone of a hold. */
  forget(holdId: string): void;
  /** Notes what has become of money that was paid out, and what the seller has left of it. */
  noteAfterPayout(holdId: string, status: PaymentStatus, left: bigint): void;
  /** What was paid out, and what the seller still has of it; undefined where nothing was. */
  payoutOf(holdId: string): { readonly paid: bigint; readonly left: bigint } | undefined;
  /** Those that have run out. */
  due(nowMs: number): string[];
  /** When the next one runs out; undefined if none is held. */
  nextExpiryMs(): number | undefined;
}

/** A row of the file, under the column names that files have had from the first: there are no migrations of them. */
interface HoldRow {
  readonly id: number;
  readonly hold_id: string;
  readonly escrow_id: string;
  readonly standing: Exclude<PaymentStatus, 'ABSENT' | 'AWAITING_BUYER'>;
  readonly amount: number | null;
  readonly currency: string | null;
  readonly expires_at_ms: number | null;
  /** What has become of it after the pay-out. */
  readonly after: HoldRow['standing'] | null;
  readonly left_over: number | null;
}

interface AwaitedRow {
  readonly hold_id: string;
  readonly escrow_id: string;
  readonly amount: number;
  readonly currency: string;
  readonly lasts_ms: number;
}

const selectHolds = `
  SELECT hold.*, after_payout.standing AS after, after_payout.left_over FROM hold LEFT JOIN after_payout
  ON after_payout.id = (SELECT max(id) FROM after_payout WHERE after_payout.hold_id = hold.hold_id)`;

/** Prepares the statements of the holds. */
export function createHoldRows(connection: Sqlite.Database): HoldRows {
  const selectHold = connection.prepare<[string], HoldRow>(`${selectHolds} WHERE hold.hold_id = ?`);
  const selectAll = connection.prepare<[], HoldRow>(`${selectHolds} ORDER BY hold.id`);
  const insert = connection.prepare(
    `INSERT INTO hold (hold_id, escrow_id, standing, amount, currency, expires_at_ms)
     VALUES (?, ?, ?, ?, ?, ?)`,
  );
  const update = connection.prepare('UPDATE hold SET standing = ? WHERE hold_id = ?');
  const forget = connection.prepare(
    `UPDATE hold SET standing = 'VOID', amount = NULL, currency = NULL, expires_at_ms = NULL WHERE hold_id = ?`,
  );
  const selectDue = connection
    .prepare<[number], string>(
      `SELECT hold_id FROM hold WHERE standing = 'HELD' AND expires_at_ms <= ? ORDER BY expires_at_ms, id`,
    )
    .pluck();
  const selectNextExpiry = connection
    .prepare<[], number>(
      `SELECT expires_at_ms FROM hold WHERE standing = 'HELD' ORDER BY expires_at_ms LIMIT 1`,
    )
    .pluck();
  const insertAwaited = connection.prepare(
    'INSERT INTO awaited_hold (hold_id, escrow_id, amount, currency, lasts_ms) VALUES (?, ?, ?, ?, ?)',
  );
  const selectAwaited = connection.prepare<[string], AwaitedRow>(
    'SELECT * FROM awaited_hold WHERE hold_id = ?',
  );
  const selectAllAwaited = connection.prepare<[], AwaitedRow>('SELECT * FROM awaited_hold ORDER BY hold_id');
  const deleteAwaited = connection.prepare('DELETE FROM awaited_hold WHERE hold_id = ?');
  const insertAfter = connection.prepare(
    'INSERT INTO after_payout (hold_id, standing, left_over) VALUES (?, ?, ?)',
  );

  function find(holdId: string): SimulatedHold | undefined {
    const row = selectHold.get(holdId);
    if (row !== undefined) return holdOf(row);
    const awaited = selectAwaited.get(holdId);
    return awaited && awaitedHoldOf(awaited);
  }
  function snapshot(holdId: string): PaymentSnapshot {
    const row = selectHold.get(holdId);
    if (row !== undefined) return snapshotOf(row);
    return selectAwaited.get(holdId) === undefined
      ? { status: 'ABSENT' }
      : { status: 'AWAITING_BUYER', nextActionUrl: `https://simulated-provider.invalid/act/${holdId}` };
  }

  return {
    find,
    snapshot,
    all: () => [...selectAll.all().map(holdOf), ...selectAllAwaited.all().map(awaitedHoldOf)],
    make: ({ holdId, escrowId, amount, currency }, status, expiresAtMs) => {
      insert.run(holdId, escrowId, status, amount, currency, Math.min(expiresAtMs, neverMs));
    },
    bury: ({ holdId, escrowId }) => {
      insert.run(holdId, escrowId, 'VOID', null, null, null);
    },
    await: ({ holdId, escrowId, amount, currency, lastsMs }) => {
      insertAwaited.run(holdId, escrowId, amount, currency, Math.min(lastsMs, neverMs));
    },
    takeAwaited: (holdId) => {
      const row = selectAwaited.get(holdId);
      if (row === undefined) return undefined;
      deleteAwaited.run(holdId);
      const { escrow_id: escrowId, amount, currency, lasts_ms: lastsMs } = row;
      return { holdId, escrowId, amount: BigInt(amount), currency, lastsMs };
    },
    move: (holdId, status) => {
      update.run(status, holdId);
    },
    forget: (holdId) => {
      forget.run(holdId);
    },
    noteAfterPayout: (holdId, status, left) => {
      insertAfter.run(holdId, status, left);
    },
    payoutOf: (holdId) => {
      const { standing, amount, left_over } = selectHold.get(holdId) ?? {};
      if (standing !== 'PAID_OUT' || typeof amount !== 'number') return undefined;
      return { paid: BigInt(amount), left: BigInt(left_over ?? amount) };
    },
    due: (nowMs) => selectDue.all(nowMs),
    nextExpiryMs: () => selectNextExpiry.get(),
  };
}

function holdOf(row: HoldRow): SimulatedHold {
  const { hold_id: holdId, escrow_id: escrowId, currency, expires_at_ms: expiresAtMs } = row;
  return {
    ...{ holdId, escrowId, status: row.after ?? row.standing, amount: amountOf(row) },
    currency: currency ?? undefined,
    expiresAtMs: expiresAtMs === null || expiresAtMs === neverMs ? undefined : expiresAtMs,
  };
}

function awaitedHoldOf({
  hold_id: holdId,
  escrow_id: escrowId,
  amount,
  currency,
}: AwaitedRow): SimulatedHold {
  const terms = { amount: BigInt(amount), currency, expiresAtMs: undefined };
  return { holdId, escrowId, status: 'AWAITING_BUYER', ...terms };
}

function snapshotOf(row: HoldRow): PaymentSnapshot {
  const { status, amount, currency, expiresAtMs } = holdOf(row);
  if (amount === undefined) return { status };
  const known = { status, amount, currency, reference: `sim-hold-${row.id}` };
  return status === 'HELD' && expiresAtMs !== undefined ? { ...known, holdExpiresAtMs: expiresAtMs } : known;
}

function amountOf({ amount, after, left_over }: HoldRow): bigint | undefined {
  if (amount === null) return undefined;
  return BigInt(after === 'PARTLY_RETURNED' ? (left_over ?? amount) : amount);
}
