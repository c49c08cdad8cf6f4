-- STRICT, WITHOUT ROWID added by hand.
CREATE TABLE `idempotency_key` (
	`caller_id` integer NOT NULL,
	`key` text NOT NULL,
	`fingerprint` blob NOT NULL,
	`claimed_at_s` integer NOT NULL,
	`status` integer,
	`body` text,
	PRIMARY KEY(`caller_id`, `key`)
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `idempotency_key_by_age` ON `idempotency_key` (`claimed_at_s`);