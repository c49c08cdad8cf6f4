import { test } from 'node:test';
import { skipUnlessPostgres } from '../support/postgres.ts';
import { createRandom } from '../support/random.ts';
import { assertAgreement } from './agreement.ts';
import { further, furtherOnPostgres } from './further-migration.ts';

// Known seeds: a new one may find a new difference, which must not stop an unrelated change.
for (const seed of [1, 6])
  test(
    `the engines reply alike to 10,000 random requests of seed ${seed}`,
    { skip: skipUnlessPostgres() },
    (t) => assertAgreement(t, createRandom(seed), 10_000),
  );

test(
  'both engines go on alike after a later version has added a column to each table',
  {
    skip: skipUnlessPostgres(),
  },
  (t) => assertAgreement(t, createRandom(1), 6_000, { sqlite: further.sql, postgres: furtherOnPostgres.sql }),
);
