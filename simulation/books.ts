import { join } from 'node:path';
import type Sqlite from 'better-sqlite3';
import type { EscrowState, InstructionKind, InstructionStatus, PayoutStatus } from '../src/domain/escrow.ts';
import type { PaymentStatus } from '../src/domain/payment.ts';
import { openBooks } from '../src/payments/simulated/books.ts';
import { fingerprintOf } from '../src/store/postgres/admission.ts';
import { nonceFingerprint, readEntries } from '../src/store/sqlite/admission.ts';
import type { Fingerprint } from '../src/store/sqlite/fingerprints.ts';
import { type Engine, type Eventual, whenThere } from './engine.ts';
import { readLog } from './evidence.ts';
import { instructionOf } from './shapes.ts';

/** The name of the provider's database in its folder. */
export const providerFileName = 'provider.db';

/** An instruction in the records of the service. */
export interface WrittenOperation {
  readonly orderId: number;
  readonly instructionId: string;
  readonly kind: InstructionKind;
  readonly status: InstructionStatus;
}

/** An instruction in the records of the provider. */
export interface GivenOperation {
  readonly instructionId: string;
  readonly holdId: string;
  readonly kind: InstructionKind;
  /** The status of the money after it; null if it never arrived. */
  readonly outcome: PaymentStatus | null;
}

/** The status of money after an event that follows its pay-out, and the amount that the seller still has. */
export interface AfterPayout {
  readonly payment: PayoutStatus;
  readonly left: number;
}

/** A hold in the records of the provider. */
export interface BookedHold {
  readonly holdId: string;
  readonly escrowId: string;
  readonly status: PaymentStatus;
  readonly amount: number | null;
  /** Oldest first. */
  readonly afterPayout: readonly AfterPayout[];
}

/** An order with the records of the service and of the provider. */
export interface BookedOrder {
  readonly id: number;
  readonly escrowId: string;
  readonly filingNo: string;
  /** The name of the platform that filed the artwork. */
  readonly filedBy: string;
  readonly state: EscrowState;
  readonly amount: number;
  readonly buyerId: string;
  readonly review: string | null;
  /** Whether an operator accepted the status that the provider reported. */
  readonly accepted: 0 | 1;
  /** The time of the next look-up at the provider, Unix milliseconds; null for none. */
  readonly lookUpAtMs: number | null;
  /** The page on which the buyer must act; null for none. */
  readonly nextActionUrl: string | null;
  /** Its states, oldest first. */
  readonly history: readonly EscrowState[];
  /** The payment statuses in its history after its release. */
  readonly afterPayout: readonly PayoutStatus[];
  /** The whole history, as responses show it. */
  readonly entries: readonly string[];
  readonly operations: readonly WrittenOperation[];
  readonly hold: BookedHold | undefined;
  readonly given: readonly GivenOperation[];
}

/** The records of the service and of the provider, filings sorted by number. */
export type Books = ReturnType<typeof joined>;

type OrderRow = Omit<BookedOrder, 'history' | 'afterPayout' | 'entries' | 'operations' | 'hold' | 'given'>;

/** Formats an entry of an order's history. */
export const entryOf = ({
  state,
  payment,
}: {
  state: string;
  payment?: string | null | undefined;
}): string => (payment ? `${state} ${payment}` : state);

/** Reads the databases of the service and of the provider. Both may be open elsewhere. Each instance has a folder. */
export function readBooks(
  engine: Engine,
  serviceFolders: readonly string[],
  providerFolder: string,
): Eventual<Books> {
  const service = engine.read(serviceFolders[0] ?? '', (client) => readService(client, serviceFolders));
  return whenThere(service, (read) => joined(read, providerFolder));
}

function joined(service: ReturnType<typeof readService>, providerFolder: string) {
  const { holds, given } = readProvider(join(providerFolder, providerFileName));
  const operations = Map.groupBy(service.operations, ({ orderId }) => orderId);
  const changes = Map.groupBy(service.changes, ({ orderId }) => orderId);
  const holdOf = new Map(holds.map((hold) => [hold.holdId, hold]));
  const givenOf = Map.groupBy(given, ({ holdId }) => holdId);
  const orders = service.orders.map((row): BookedOrder => {
    const written = operations.get(row.id) ?? [];
    const holdId = written.find(({ kind }) => kind === 'FREEZE')?.instructionId ?? '';
    const entries = changes.get(row.id) ?? [];
    return {
      ...row,
      history: entries.flatMap(({ state, payment }) => (payment === null ? [state] : [])),
      afterPayout: entries.flatMap(({ payment }) => (payment === null ? [] : [payment])),
      entries: entries.map(entryOf),
      operations: written,
      hold: holdOf.get(holdId),
      given: givenOf.get(holdId) ?? [],
    };
  });
  return { ...service, orders, holds, given };
}

function readService(client: Sqlite.Database, folders: readonly string[]) {
  const all = <Row>(sql: string) => client.prepare<[], Row>(sql).all();
  const pairs = <Key, Value>(sql: string) => new Map(client.prepare<[], [Key, Value]>(sql).raw().all());
  const events = Map.groupBy(
    all<{ filingNo: string; event: string }>(
      'SELECT filing_no AS filingNo, event FROM provenance_record ORDER BY filing_no, position',
    ),
    ({ filingNo }) => filingNo,
  );
  const filings = all<{ filingNo: string; author: string }>(
    'SELECT filing_no AS filingNo, author FROM filing ORDER BY filing_no',
  );
  return {
    /** With the events of their provenance records in order. The filing itself is the SUBMITTED record. */
    filings: filings.map((row) => ({
      ...row,
      events: (events.get(row.filingNo) ?? []).map(({ event }) => event),
    })),
    nonces: readNonces(client, pairs<string, number>('SELECT api_key, id FROM api_key')),
    /** The stored idempotency keys. */
    keys: new Set(client.prepare<[], string>('SELECT key FROM idempotency_key').pluck().all()),
    /** The counted calls by caller id. */
    usage: pairs<number, number>('SELECT caller_id, sum(calls) FROM usage GROUP BY caller_id'),
    log: readLog(client, folders),
    orders: all<OrderRow>(
      `SELECT id, escrow_id AS escrowId, filing_no AS filingNo, state, amount, buyer_id AS buyerId, review,
         (SELECT name FROM filing JOIN caller ON caller.id = filing.caller_id
          WHERE filing.filing_no = escrow.filing_no) AS filedBy,
         accepted, look_up_at_ms AS lookUpAtMs, next_action_url AS nextActionUrl
       FROM escrow ORDER BY id`,
    ),
    operations: all<WrittenOperation>(
      `SELECT order_id AS orderId, instruction_id AS instructionId, kind, status
       FROM escrow_instruction ORDER BY id`,
    ),
    changes: all<{ orderId: number; state: EscrowState; payment: PayoutStatus | null }>(
      'SELECT order_id AS orderId, state, payment FROM escrow_change ORDER BY order_id, position',
    ),
  };
}

/** Reads the consumed nonces in the tables of either engine. */
function readNonces(client: Sqlite.Database, keys: ReadonlyMap<string, number>) {
  const isOfPostgres = client.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'nonce'").get() !== undefined;
  const textOf = ({ high, low }: Fingerprint) => `${high} ${low}`;
  const spent = isOfPostgres
    ? client.prepare<[], string>('SELECT CAST(fingerprint AS TEXT) FROM nonce').pluck().all()
    : client
        .prepare<[], Buffer>('SELECT entries FROM spent_nonces')
        .pluck()
        .all()
        .flatMap((entries) => readEntries(entries).map(({ fingerprint }) => textOf(fingerprint)));
  const all = new Set(spent);
  return {
    count: spent.length,
    /** Whether a call with this API key consumed the nonce. */
    has: (apiKey: string, nonce: string): boolean => {
      const key = keys.get(apiKey) ?? 0;
      return all.has(isOfPostgres ? fingerprintOf(key, nonce) : textOf(nonceFingerprint(`${key} ${nonce}`)));
    },
  };
}

function readProvider(file: string): {
  readonly holds: readonly BookedHold[];
  readonly given: readonly GivenOperation[];
} {
  const books = openBooks(file);
  const all = books.all();
  books.close();
  const holds = all
    .filter(({ status }) => status !== 'ABSENT')
    .map(({ holdId, escrowId, status, amount, afterPayout = [] }) => ({
      ...{ holdId, escrowId, status },
      amount: status === 'VOID' || amount === undefined ? null : Number(amount),
      afterPayout: afterPayout.map((one) => ({
        payment: one.status as PayoutStatus,
        left: Number(one.left),
      })),
    }));
  const given = all.flatMap(({ holdId, instructions }) =>
    Object.entries(instructions).map(([key, { kind, outcome = null }]) => ({
      ...{ holdId, kind, outcome, instructionId: instructionOf(key) },
    })),
  );
  return { holds, given };
}
