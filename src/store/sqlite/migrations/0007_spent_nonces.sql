-- STRICT, and what becomes of the nonces that are spent, added by hand; nonce_entry is a function of the service.
CREATE TABLE `spent_nonces` (
	`id` integer PRIMARY KEY NOT NULL,
	`window` integer NOT NULL,
	`entries` blob NOT NULL
) STRICT;
--> statement-breakpoint
CREATE INDEX `spent_nonces_by_window` ON `spent_nonces` (`window`);--> statement-breakpoint
INSERT INTO `spent_nonces` (`window`, `entries`)
SELECT `window`, nonce_entry(`api_key_id` || ' ' || `nonce`, `claimed_at_s`) FROM `nonce_claim`;
--> statement-breakpoint
DROP TABLE `nonce_claim`;
