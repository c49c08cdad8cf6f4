-- The processes that serve the database, and when each was there last. After a crash of the server they enter themselves again.
CREATE UNLOGGED TABLE instance (
  id bigint PRIMARY KEY,
  -- Of the session that works for it.
  pid bigint NOT NULL,
  -- The newest schema that it knows.
  schema bigint NOT NULL,
  facts json NOT NULL,
  is_leading boolean NOT NULL DEFAULT false,
  joined_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  seen_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- Rows of processes that are gone are removed after a time.
ALTER TABLE batch ADD at timestamptz NOT NULL DEFAULT now();

-- When the full burst of a caller is available again, over all instances: one row a caller, which is replaced as in usage.
-- A crash of the database empties the table, and each instance then begins with what it has allowed itself.
CREATE UNLOGGED TABLE rate (
  caller_id bigint NOT NULL,
  arrives_at timestamptz NOT NULL,
  PRIMARY KEY (caller_id, arrives_at)
);
