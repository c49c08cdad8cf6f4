import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import type { EscrowState, OperationKind, OperationStatus, Standing } from '../src/domain/escrow.ts';
import { ledgerFileName } from '../src/payment/simulated/ledger-file.ts';

/** An instruction as the service has written it down. */
export interface WrittenOperation {
  readonly orderId: number;
  readonly operationId: string;
  readonly kind: OperationKind;
  readonly status: OperationStatus;
}

/** An instruction as the institution knows it; `cameTo` is where it left the money, null if it never arrived. */
export interface GivenOperation {
  readonly operationId: string;
  readonly holdId: string;
  readonly kind: OperationKind;
  readonly cameTo: Standing | null;
}

/** A hold as the institution has it. */
export interface BookedHold {
  readonly holdId: string;
  readonly escrowId: string;
  readonly standing: Standing;
  readonly amount: number | null;
}

/** An order with all that either side knows of it. */
export interface BookedOrder {
  readonly id: number;
  readonly escrowId: string;
  readonly filingNo: string;
  readonly state: EscrowState;
  readonly amount: number;
  readonly buyerId: string;
  readonly attention: string | null;
  readonly history: readonly EscrowState[];
  readonly operations: readonly WrittenOperation[];
  readonly hold: BookedHold | undefined;
  readonly given: readonly GivenOperation[];
}

/** What both sides have written down. */
export interface Books {
  readonly orders: readonly BookedOrder[];
  readonly holds: readonly BookedHold[];
  readonly given: readonly GivenOperation[];
  /** TRANSFER records by filing. */
  readonly transfers: ReadonlyMap<string, number>;
}

type OrderRow = Omit<BookedOrder, 'history' | 'operations' | 'hold' | 'given'>;

/** Reads what is on disk in the folders of the service and of the institution; both may be in use. */
export function readBooks(serviceFolder: string, institutionFolder: string): Books {
  const service = reading(join(serviceFolder, 'artseal.db'), readService);
  const { holds, given } = reading(join(institutionFolder, ledgerFileName), readInstitution);
  const operations = Map.groupBy(service.operations, ({ orderId }) => orderId);
  const changes = Map.groupBy(service.changes, ({ orderId }) => orderId);
  const holdOf = new Map(holds.map((hold) => [hold.holdId, hold]));
  const givenOf = Map.groupBy(given, ({ holdId }) => holdId);
  const orders = service.orders.map((row) => {
    const written = operations.get(row.id) ?? [];
    const holdId = written.find(({ kind }) => kind === 'FREEZE')?.operationId ?? '';
    return {
      ...row,
      history: (changes.get(row.id) ?? []).map(({ state }) => state),
      operations: written,
      hold: holdOf.get(holdId),
      given: givenOf.get(holdId) ?? [],
    };
  });
  return { orders, holds, given, transfers: new Map(service.transfers) };
}

function reading<T>(file: string, read: (client: Sqlite.Database) => T): T {
  const client = new Sqlite(file, { readonly: true });
  try {
    return read(client);
  } finally {
    client.close();
  }
}

function readService(client: Sqlite.Database) {
  const all = <Row>(sql: string) => client.prepare<[], Row>(sql).all();
  const transfers = client
    .prepare<[], [string, number]>(
      `SELECT filing_no, count(*) FROM provenance_record WHERE event = 'TRANSFER' GROUP BY filing_no`,
    )
    .raw()
    .all();
  return {
    transfers,
    orders: all<OrderRow>(
      `SELECT id, escrow_id AS escrowId, filing_no AS filingNo, state, amount, buyer_id AS buyerId, attention
       FROM escrow ORDER BY id`,
    ),
    operations: all<WrittenOperation>(
      `SELECT order_id AS orderId, operation_id AS operationId, kind, status
       FROM escrow_operation ORDER BY id`,
    ),
    changes: all<{ orderId: number; state: EscrowState }>(
      'SELECT order_id AS orderId, state FROM escrow_change ORDER BY order_id, position',
    ),
  };
}

function readInstitution(client: Sqlite.Database) {
  const all = <Row>(sql: string) => client.prepare<[], Row>(sql).all();
  return {
    holds: all<BookedHold>(
      'SELECT hold_id AS holdId, escrow_id AS escrowId, standing, amount FROM hold ORDER BY id',
    ),
    given: all<GivenOperation>(
      'SELECT operation_id AS operationId, hold_id AS holdId, kind, came_to AS cameTo FROM operation',
    ),
  };
}
