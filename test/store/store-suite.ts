import { describe } from 'node:test';
import { admissionPromises } from './promises/admission.ts';
import { callerPromises } from './promises/callers.ts';
import { decisionPromises } from './promises/decisions.ts';
import { durabilityPromises } from './promises/durability.ts';
import { escrowPromises } from './promises/escrows.ts';
import { filingPromises } from './promises/filings.ts';
import type { StoreEngine } from './promises/fixtures.ts';
import { idempotencyPromises } from './promises/idempotency.ts';
import { institutionPromises } from './promises/institutions.ts';
import { keyAndTokenPromises } from './promises/keys-and-tokens.ts';
import { noncePromises } from './promises/nonces.ts';
import { notificationPromises } from './promises/notifications.ts';
import { numberPromises } from './promises/numbers.ts';
import { operationPromises } from './promises/operations.ts';
import { orderUpdatePromises } from './promises/order-updates.ts';
import { quotaPromises } from './promises/quotas.ts';
import { servingPromises } from './promises/serving.ts';

/** What every engine of the store promises. */
export function storeSuite(name: string, engine: StoreEngine): void {
  describe(`store on ${name}`, () => {
    describe('numbers', () => numberPromises(engine));
    describe('filings', () => filingPromises(engine));
    describe('escrows', () => escrowPromises(engine));
    describe('order updates', () => orderUpdatePromises(engine));
    describe('operations', () => operationPromises(engine));
    describe('notifications', () => notificationPromises(engine));
    describe('decisions', () => decisionPromises(engine));
    describe('callers', () => callerPromises(engine));
    describe('keys and tokens', () => keyAndTokenPromises(engine));
    describe('admission', () => admissionPromises(engine));
    describe('nonces', () => noncePromises(engine));
    describe('quotas', () => quotaPromises(engine));
    describe('idempotency', () => idempotencyPromises(engine));
    describe('institutions', () => institutionPromises(engine));
    describe('serving', () => servingPromises(engine));
    describe('durability', () => durabilityPromises(engine));
  });
}
