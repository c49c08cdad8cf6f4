import { test } from 'node:test';
import { skipUnlessPostgres } from '../support/postgres.ts';
import { createRandom } from '../support/random.ts';
import { assertAgreement } from './agreement.ts';

test('the engines reply alike to 10,000 random filings and reads', { skip: skipUnlessPostgres() }, (t) =>
  assertAgreement(t, createRandom(), 10_000, ['filing']),
);
