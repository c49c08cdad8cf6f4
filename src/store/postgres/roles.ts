import { getTableColumns } from 'drizzle-orm';
import { erasedArtwork } from '../../domain/filing.ts';
import { DatabaseError } from '../engine/failure.ts';
import {
  apiKey,
  deployment,
  idempotencyKey,
  logKey,
  registration,
  serviceToken,
  webhook,
} from '../engine/schema.ts';
import type { Queries } from './leaf-rows.ts';

/** What the role that serves may do to a table beside reading it, and the columns that it may update. */
type Grant = readonly [rights: string, updated?: string];

/** What the commands of the store need. The suite of the store runs with these grants. */
const grants: Readonly<Record<string, Grant>> = {
  api_key: ['INSERT', 'sealed_secret, status, expires_at_s'],
  audit_entry: ['INSERT'],
  batch: ['INSERT, DELETE'],
  caller: ['INSERT', 'tier, monthly_quota, status, filing_cap'],
  deployment: ['', 'provider, newest_webhook, clock_ahead_s'],
  escrow: [
    'INSERT',
    'state, reference, look_up_at_ms, failed_attempts, review, found_status, found_amount, found_currency, accepted, ' +
      'notification_count, hold_expires_at_s, next_action_url, next_action_until_ms, notified_hold_end_s',
  ],
  escrow_change: ['INSERT'],
  escrow_instruction: ['INSERT', 'status, reason'],
  event: ['INSERT, DELETE'],
  event_floor: ['INSERT', 'sequence, position'],
  evidence_link: ['INSERT, DELETE', 'revoked_at_s'],
  filing: [
    'INSERT',
    [...Object.keys(erasedArtwork), 'attachments', 'hash', 'salt', 'erased_at_s'].join(', '),
  ],
  idempotency_key: ['INSERT, DELETE', 'fingerprint, claimed_at_s, instruction_id, outcome, request_id'],
  instance: ['INSERT, DELETE', 'facts, is_leading, seen_at'],
  log_checkpoint: ['INSERT, DELETE', 'note, published_at_s, time_stamp'],
  log_event: ['INSERT'],
  log_key: ['INSERT', 'sealed_seed, ends_at_s'],
  log_leaf: ['INSERT'],
  log_origin: ['INSERT'],
  nonce: ['INSERT, DELETE', 'at_s'],
  number_gap: ['INSERT'],
  number_sequence: ['INSERT', 'last'],
  party: ['INSERT', 'removed_at_s'],
  provenance_record: ['INSERT', 'salt'],
  provider_notification: ['INSERT, DELETE', 'received_at_s'],
  rate: ['INSERT, DELETE'],
  registration: [
    'INSERT, DELETE',
    'email, name, intended_use, tier, by_form, registered_at_s, appointment_at_s, caller_id, link_sha256, ' +
      'link_expires_at_s, claimed_at_s, notice, notice_attempt, notice_at_s, notice_detail, removed_at_s',
  ],
  restoration: ['INSERT', 'served_at_s'],
  service_token: ['INSERT', 'revoked_at_s'],
  usage: ['INSERT, DELETE'],
  webhook: [
    'INSERT, DELETE',
    'origin, sealed_url, event_types, description, status, disabled_reason, sealed_secret, previous_secret, ' +
      'previous_ends_at_s, cursor, failing_since_s',
  ],
  webhook_delivery: [
    'INSERT, DELETE',
    'status, attempts, last_attempt_at_ms, next_attempt_at_ms, http_status, response, error',
  ],
};

/** Columns that the role that only reads may not read: secrets, and responses that may have one. */
const hidden = {
  api_key: [apiKey, ['sealed_secret']],
  deployment: [deployment, ['secret']],
  idempotency_key: [idempotencyKey, ['outcome']],
  log_key: [logKey, ['sealed_seed']],
  registration: [registration, ['email_digest', 'link_sha256']],
  service_token: [serviceToken, ['sha256']],
  webhook: [webhook, ['sealed_url', 'sealed_secret', 'previous_secret']],
} as const;

/** The roles beside the one that owns the tables. */
export interface Roles {
  /** Serves. */
  readonly app: string;
  /** Only reads, and no secrets; undefined if there is none. */
  readonly reader: string | undefined;
}

/** The SQL by which the owner of the tables lets the other roles use them. It ends what they were granted before. */
export function grantsFor({ app, reader }: Roles): string[] {
  return [
    'BEGIN;',
    ...grantsOfApp(quoted(app)),
    ...(reader ? grantsOfReader(quoted(reader)) : []),
    'COMMIT;',
  ];
}

function grantsOfApp(app: string): string[] {
  const own = Object.entries(grants).flatMap(([table, [rights, updated]]) => {
    const all = [...listOf(rights), ...(updated === undefined ? [] : [`UPDATE (${updated})`])];
    return `GRANT ${all.join(', ')} ON ${table} TO ${app};`;
  });
  return [
    'SET LOCAL search_path = public;',
    'REVOKE CREATE ON SCHEMA public FROM PUBLIC;',
    ...emptied(app),
    `GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO ${app};`,
    `GRANT SELECT ON ALL TABLES IN SCHEMA public TO ${app};`,
    ...own,
  ];
}

function grantsOfReader(reader: string): string[] {
  const tables = Object.keys(hidden).join(', ');
  return [
    ...emptied(reader),
    `GRANT SELECT ON ALL TABLES IN SCHEMA public TO ${reader};`,
    `REVOKE SELECT ON ${tables} FROM ${reader};`,
    ...Object.entries(hidden).map(([table, [columns, secret]]) => {
      const names = Object.values(getTableColumns(columns)).map(({ name }) => name);
      const shown = names.filter((name) => !(secret as readonly string[]).includes(name));
      return `GRANT SELECT (${shown.join(', ')}) ON ${table} TO ${reader};`;
    }),
  ];
}

const emptied = (role: string): string[] => [
  `REVOKE ALL ON SCHEMA public FROM ${role};`,
  `REVOKE ALL ON ALL TABLES IN SCHEMA public FROM ${role};`,
  `GRANT USAGE ON SCHEMA public TO ${role};`,
];

const quoted = (name: string): string => `"${name.replaceAll('"', '""')}"`;

const listOf = (text: string): string[] => text.split(', ').filter((part) => part !== '');

/** All that serving needs: tables, rights, and columns. */
const needed = Object.entries(grants).flatMap(([table, [rights, updated = '']]) => [
  ...['SELECT', ...listOf(rights)].map((right) => [table, right, null] as const),
  ...listOf(updated).map((column) => [table, 'UPDATE', column] as const),
]);

/** Throws DatabaseError if the role of the session lacks a grant that serving needs, on a table that exists. */
export async function refuseWithoutGrants(queries: Queries): Promise<void> {
  const { rows } = await queries.query<{ role: string; privilege: string; name: string }>(selectMissing, [
    needed.map(([table]) => table),
    needed.map(([, right]) => right),
    needed.map(([, , column]) => column),
  ]);
  const [missing] = rows;
  if (missing === undefined) return;
  const { role, privilege, name } = missing;
  throw new DatabaseError(
    `the role ${role} has no right to ${privilege} in the table ${name}: run the SQL that artseal database roles --app ${role} ` +
      'prints, as the role that owns the tables.',
  );
}

/** A table or column that is not there has no privilege, and is not missing one. */
const selectMissing = `SELECT current_user AS role, privilege, name
  FROM unnest($1::text[], $2::text[], $3::text[]) AS needed (name, privilege, "column")
  LEFT JOIN pg_attribute ON attrelid = to_regclass(name) AND attname = "column"
  WHERE NOT CASE WHEN "column" IS NULL THEN has_table_privilege(to_regclass(name), privilege)
    ELSE has_column_privilege(attrelid, attnum, privilege) END
  LIMIT 1`;
