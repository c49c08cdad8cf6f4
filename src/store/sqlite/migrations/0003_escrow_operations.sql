-- STRICT, WITHOUT ROWID, triggers and what becomes of earlier orders added by hand.
CREATE TABLE `escrow_change` (
	`order_id` integer NOT NULL,
	`position` integer NOT NULL,
	`state` text NOT NULL,
	`at` text NOT NULL,
	`changed_at_s` integer NOT NULL,
	PRIMARY KEY(`order_id`, `position`),
	FOREIGN KEY (`order_id`) REFERENCES `escrow`(`id`) ON UPDATE no action ON DELETE no action
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `escrow_operation` (
	`id` integer PRIMARY KEY NOT NULL,
	`operation_id` text NOT NULL,
	`order_id` integer NOT NULL,
	`kind` text NOT NULL,
	`status` text NOT NULL,
	`prepared_at_ms` integer NOT NULL,
	FOREIGN KEY (`order_id`) REFERENCES `escrow`(`id`) ON UPDATE no action ON DELETE no action
) STRICT;
--> statement-breakpoint
CREATE UNIQUE INDEX `escrow_operation_operation_id_unique` ON `escrow_operation` (`operation_id`);--> statement-breakpoint
CREATE INDEX `escrow_operation_by_order` ON `escrow_operation` (`order_id`);--> statement-breakpoint
CREATE INDEX `escrow_operation_open` ON `escrow_operation` (`order_id`) WHERE "escrow_operation"."status" IN ('PREPARED', 'SENT', 'UNKNOWN');--> statement-breakpoint
CREATE UNIQUE INDEX `escrow_freeze` ON `escrow_operation` (`order_id`) WHERE "escrow_operation"."kind" = 'FREEZE';--> statement-breakpoint
CREATE UNIQUE INDEX `escrow_resolution_open` ON `escrow_operation` (`order_id`) WHERE "escrow_operation"."kind" <> 'FREEZE' AND "escrow_operation"."status" IN ('PREPARED', 'SENT', 'UNKNOWN');--> statement-breakpoint
CREATE UNIQUE INDEX `escrow_resolution_paid` ON `escrow_operation` (`order_id`) WHERE "escrow_operation"."kind" IN ('RELEASE', 'REFUND') AND "escrow_operation"."status" = 'CONFIRMED';--> statement-breakpoint
CREATE TABLE `institution_notification` (
	`event_id` text PRIMARY KEY NOT NULL,
	`received_at_s` integer NOT NULL
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `institution_notification_by_age` ON `institution_notification` (`received_at_s`);--> statement-breakpoint
DROP INDEX `filing_by_caller`;--> statement-breakpoint
CREATE INDEX `filing_by_caller_and_number` ON `filing` (`caller_id`,`filing_no`);--> statement-breakpoint
ALTER TABLE `deployment` ADD `currency` text;--> statement-breakpoint
ALTER TABLE `deployment` ADD `institution` text;--> statement-breakpoint
ALTER TABLE `escrow` ADD `reference` text;--> statement-breakpoint
ALTER TABLE `escrow` ADD `look_up_at_ms` integer;--> statement-breakpoint
ALTER TABLE `escrow` ADD `unanswered` integer DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE `escrow` ADD `attention` text;--> statement-breakpoint
ALTER TABLE `escrow` ADD `found_standing` text;--> statement-breakpoint
ALTER TABLE `escrow` ADD `found_amount` integer;--> statement-breakpoint
ALTER TABLE `escrow` ADD `found_currency` text;--> statement-breakpoint
ALTER TABLE `escrow` ADD `accepted` integer DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE `escrow` ADD `notices` integer DEFAULT 0 NOT NULL;--> statement-breakpoint
CREATE INDEX `escrow_by_caller_and_state` ON `escrow` (`caller_id`,`state`);--> statement-breakpoint
CREATE INDEX `escrow_by_filing` ON `escrow` (`filing_no`);--> statement-breakpoint
CREATE INDEX `escrow_by_state` ON `escrow` (`state`);--> statement-breakpoint
CREATE INDEX `escrow_by_look_up` ON `escrow` (`look_up_at_ms`) WHERE "escrow"."look_up_at_ms" IS NOT NULL;--> statement-breakpoint
CREATE INDEX `escrow_in_need` ON `escrow` (`id`) WHERE "escrow"."attention" IS NOT NULL;--> statement-breakpoint
ALTER TABLE `idempotency_key` ADD `operation_id` text;--> statement-breakpoint
CREATE TRIGGER `escrow_change_never_changes` BEFORE UPDATE ON `escrow_change`
BEGIN SELECT RAISE(ABORT, 'a state that an order has been in never changes'); END;
--> statement-breakpoint
CREATE TRIGGER `escrow_change_never_replaced` BEFORE INSERT ON `escrow_change`
WHEN EXISTS (SELECT 1 FROM `escrow_change` WHERE `order_id` = NEW.`order_id` AND `position` = NEW.`position`)
BEGIN SELECT RAISE(ABORT, 'a state that an order has been in is never replaced'); END;
--> statement-breakpoint
CREATE TRIGGER `escrow_change_is_retained` BEFORE DELETE ON `escrow_change`
WHEN OLD.`changed_at_s` > unixepoch('now', '-5 years')
BEGIN SELECT RAISE(ABORT, 'the history of an order is kept for five years'); END;
--> statement-breakpoint
-- Earlier orders kept no instructions and no moments but that of their opening.
INSERT INTO `escrow_operation` (`operation_id`, `order_id`, `kind`, `status`, `prepared_at_ms`)
SELECT lower(hex(randomblob(16))), `id`, 'FREEZE',
  CASE `state` WHEN 'UNPAID' THEN 'UNKNOWN' WHEN 'CLOSED' THEN 'DECLINED' ELSE 'CONFIRMED' END,
  unixepoch(`timestamp`) * 1000
FROM `escrow`;
--> statement-breakpoint
INSERT INTO `escrow_operation` (`operation_id`, `order_id`, `kind`, `status`, `prepared_at_ms`)
SELECT lower(hex(randomblob(16))), `id`, 'RELEASE', 'CONFIRMED', unixepoch(`timestamp`) * 1000
FROM `escrow` WHERE `state` = 'RELEASED';
--> statement-breakpoint
INSERT INTO `escrow_change` (`order_id`, `position`, `state`, `at`, `changed_at_s`)
SELECT `id`, 1, 'UNPAID', `timestamp`, unixepoch(`timestamp`) FROM `escrow`;
--> statement-breakpoint
INSERT INTO `escrow_change` (`order_id`, `position`, `state`, `at`, `changed_at_s`)
SELECT `id`, 2, iif(`state` = 'CLOSED', 'CLOSED', 'FROZEN'), `timestamp`, unixepoch(`timestamp`)
FROM `escrow` WHERE `state` <> 'UNPAID';
--> statement-breakpoint
INSERT INTO `escrow_change` (`order_id`, `position`, `state`, `at`, `changed_at_s`)
SELECT `id`, 3, 'RELEASED', `timestamp`, unixepoch(`timestamp`) FROM `escrow` WHERE `state` = 'RELEASED';
--> statement-breakpoint
-- Windows have become as long as nonces are remembered.
UPDATE OR REPLACE `nonce_claim` SET `window` = `claimed_at_s` / 660;
