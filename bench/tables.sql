-- The tables of the hand-written servers. The integer of a filing is its number without the letters: 2026000001 for
-- AS-2026-000001.
CREATE TABLE IF NOT EXISTS filing (
  number INTEGER PRIMARY KEY, platform INTEGER NOT NULL, author TEXT NOT NULL, era TEXT NOT NULL, size TEXT NOT NULL,
  material TEXT NOT NULL, condition TEXT NOT NULL, price INTEGER NOT NULL, hash TEXT NOT NULL, timestamp TEXT NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS provenance_record (
  number INTEGER, position INTEGER, event TEXT NOT NULL, at TEXT NOT NULL, PRIMARY KEY (number, position)
) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS nonce (
  window INTEGER, platform INTEGER, nonce TEXT, PRIMARY KEY (window, platform, nonce)
) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS usage (
  platform INTEGER, month TEXT, calls INTEGER NOT NULL, PRIMARY KEY (platform, month)
) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS number_sequence (year INTEGER PRIMARY KEY, last INTEGER NOT NULL) STRICT;
