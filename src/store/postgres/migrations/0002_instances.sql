-- The instances that serve the database, and when each last reported. A crash of PostgreSQL empties the table, and they enter again.
CREATE UNLOGGED TABLE instance (
  id bigint PRIMARY KEY,
  -- The newest schema that it knows.
  schema bigint NOT NULL,
  facts json NOT NULL,
  is_leading boolean NOT NULL DEFAULT false,
  joined_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  seen_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- Rows of instances that are gone are removed after an hour.
ALTER TABLE batch ADD at timestamptz NOT NULL DEFAULT now();

-- When the full burst of a caller is available again, over all instances: one row for each caller, replaced as in usage.
-- A crash of PostgreSQL empties the table. Each instance then counts from what it has allowed itself.
CREATE UNLOGGED TABLE rate (
  caller_id bigint NOT NULL,
  arrives_at timestamptz NOT NULL,
  PRIMARY KEY (caller_id, arrives_at)
);
