import type { EscrowCommands } from '../escrow-commands.ts';
import type { PartyCommands } from '../party-commands.ts';
import type { ReconciliationCommands } from '../reconciliation-commands.ts';
import type { RecordAudit } from './audit-log.ts';
import type { Database } from './connection.ts';
import { createEscrowBooks } from './escrow-books.ts';
import { createEscrowHandlers } from './escrows.ts';
import type { EvidenceLog } from './evidence-log.ts';
import type { Handlers } from './handlers.ts';
import type { Outbox } from './outbox.ts';
import { createPartyHandlers, createPartyRegister } from './parties.ts';
import { createReconciliationHandlers } from './reconciliation.ts';
import type { RecordCheck } from './record-check.ts';

/** Handlers of orders, reconciliation and parties, which share the same books. */
export function createOrderHandlers(
  database: Database,
  recordAudit: RecordAudit,
  log: EvidenceLog,
  outbox: Outbox,
  check: RecordCheck,
): Handlers<keyof EscrowCommands | keyof ReconciliationCommands | keyof PartyCommands> {
  const parties = createPartyRegister(database);
  const books = createEscrowBooks(database, parties, log, outbox, check);
  return {
    ...createEscrowHandlers(database, books, check),
    ...createReconciliationHandlers(database, books, recordAudit),
    ...createPartyHandlers(database, parties, recordAudit),
  };
}
