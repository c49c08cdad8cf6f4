CREATE TABLE `api_key` (
	`id` integer PRIMARY KEY NOT NULL,
	`key_id` text NOT NULL,
	`api_key` text NOT NULL,
	`caller_id` integer NOT NULL,
	`sealed_secret` blob NOT NULL,
	`status` text NOT NULL,
	`created_at_s` integer NOT NULL,
	`expires_at_s` integer,
	FOREIGN KEY (`caller_id`) REFERENCES `caller`(`id`) ON UPDATE no action ON DELETE no action
) STRICT;
--> statement-breakpoint
CREATE UNIQUE INDEX `api_key_key_id_unique` ON `api_key` (`key_id`);--> statement-breakpoint
CREATE UNIQUE INDEX `api_key_api_key_unique` ON `api_key` (`api_key`);--> statement-breakpoint
CREATE TABLE `caller` (
	`id` integer PRIMARY KEY NOT NULL,
	`name` text NOT NULL,
	`tier` text,
	`monthly_quota` integer,
	`status` text DEFAULT 'ACTIVE' NOT NULL,
	`filing_cap` integer
) STRICT;
--> statement-breakpoint
CREATE UNIQUE INDEX `caller_name_unique` ON `caller` (`name`);--> statement-breakpoint
CREATE INDEX `caller_capped` ON `caller` (`id`) WHERE "caller"."filing_cap" IS NOT NULL;--> statement-breakpoint
CREATE TABLE `idempotency_key` (
	`caller_id` integer NOT NULL,
	`key` text NOT NULL,
	`fingerprint` blob NOT NULL,
	`claimed_at_s` integer NOT NULL,
	`instruction_id` text,
	`outcome` blob,
	`request_id` text,
	PRIMARY KEY(`caller_id`, `key`)
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `idempotency_key_by_age` ON `idempotency_key` (`claimed_at_s`);--> statement-breakpoint
CREATE TABLE `party` (
	`id` integer PRIMARY KEY NOT NULL,
	`caller_id` integer NOT NULL,
	`role` text NOT NULL,
	`party_id` text NOT NULL,
	`provider_ids` text NOT NULL,
	`added_at_s` integer NOT NULL,
	`removed_at_s` integer,
	FOREIGN KEY (`caller_id`) REFERENCES `caller`(`id`) ON UPDATE no action ON DELETE no action
) STRICT;
--> statement-breakpoint
CREATE UNIQUE INDEX `party_known` ON `party` (`caller_id`,`role`,`party_id`) WHERE "party"."removed_at_s" IS NULL;--> statement-breakpoint
CREATE TABLE `service_token` (
	`id` integer PRIMARY KEY NOT NULL,
	`token_id` text NOT NULL,
	`sha256` blob NOT NULL,
	`caller_id` integer NOT NULL,
	`created_at_s` integer NOT NULL,
	`revoked_at_s` integer,
	`scopes` text DEFAULT '' NOT NULL,
	`expires_at_s` integer,
	`platform_id` integer,
	FOREIGN KEY (`caller_id`) REFERENCES `caller`(`id`) ON UPDATE no action ON DELETE no action,
	FOREIGN KEY (`platform_id`) REFERENCES `caller`(`id`) ON UPDATE no action ON DELETE no action
) STRICT;
--> statement-breakpoint
CREATE UNIQUE INDEX `service_token_token_id_unique` ON `service_token` (`token_id`);--> statement-breakpoint
CREATE UNIQUE INDEX `service_token_sha256_unique` ON `service_token` (`sha256`);--> statement-breakpoint
CREATE TABLE `spent_nonces` (
	`id` integer PRIMARY KEY NOT NULL,
	`window` integer NOT NULL,
	`entries` blob NOT NULL
) STRICT;
--> statement-breakpoint
CREATE INDEX `spent_nonces_by_window` ON `spent_nonces` (`window`);--> statement-breakpoint
CREATE TABLE `usage` (
	`caller_id` integer NOT NULL,
	`month` text NOT NULL,
	`calls` integer NOT NULL,
	PRIMARY KEY(`caller_id`, `month`)
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `audit_entry` (
	`id` integer PRIMARY KEY NOT NULL,
	`at_s` integer NOT NULL,
	`actor` text NOT NULL,
	`action` text NOT NULL,
	`subject` text NOT NULL,
	`reason` text,
	`before` text,
	`after` text
) STRICT;
--> statement-breakpoint
CREATE TABLE `deployment` (
	`id` integer PRIMARY KEY NOT NULL,
	`environment` text NOT NULL,
	`secret` blob NOT NULL,
	`currency` text NOT NULL,
	`provider` text,
	`newest_webhook` integer DEFAULT 0 NOT NULL,
	CONSTRAINT "deployment_is_one_row" CHECK("deployment"."id" = 1)
) STRICT;
--> statement-breakpoint
CREATE TABLE `number_gap` (
	`kind` text NOT NULL,
	`year` integer NOT NULL,
	`after` integer NOT NULL,
	`through` integer NOT NULL,
	`restoration_id` integer NOT NULL,
	PRIMARY KEY(`kind`, `year`, `after`),
	FOREIGN KEY (`restoration_id`) REFERENCES `restoration`(`id`) ON UPDATE no action ON DELETE no action
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `number_sequence` (
	`kind` text NOT NULL,
	`year` integer NOT NULL,
	`last` integer NOT NULL,
	PRIMARY KEY(`kind`, `year`)
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `oldest_version` (
	`id` integer PRIMARY KEY NOT NULL,
	`schema` integer NOT NULL,
	`version` text NOT NULL
) STRICT;
--> statement-breakpoint
CREATE TABLE `restoration` (
	`id` integer PRIMARY KEY NOT NULL,
	`taken_at_s` integer NOT NULL,
	`restored_at_s` integer NOT NULL,
	`served_at_s` integer
) STRICT;
--> statement-breakpoint
CREATE TABLE `event_head` (
	`caller_id` integer PRIMARY KEY NOT NULL,
	`sequence` integer NOT NULL,
	`position` integer NOT NULL
) STRICT;
--> statement-breakpoint
CREATE TABLE `event_log` (
	`id` integer PRIMARY KEY NOT NULL,
	`first` integer NOT NULL,
	`newest_at_s` integer NOT NULL,
	`lines` text NOT NULL
) STRICT;
--> statement-breakpoint
CREATE TABLE `event_mark` (
	`caller_id` integer NOT NULL,
	`sequence` integer NOT NULL,
	`position` integer NOT NULL,
	PRIMARY KEY(`caller_id`, `sequence`)
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `webhook` (
	`id` integer PRIMARY KEY NOT NULL,
	`webhook_id` text NOT NULL,
	`caller_id` integer NOT NULL,
	`origin` text NOT NULL,
	`sealed_url` blob NOT NULL,
	`event_types` text NOT NULL,
	`description` text NOT NULL,
	`status` text NOT NULL,
	`disabled_reason` text,
	`created_at_s` integer NOT NULL,
	`sealed_secret` blob NOT NULL,
	`previous_secret` blob,
	`previous_ends_at_s` integer,
	`cursor` integer NOT NULL,
	`failing_since_s` integer,
	FOREIGN KEY (`caller_id`) REFERENCES `caller`(`id`) ON UPDATE no action ON DELETE no action
) STRICT;
--> statement-breakpoint
CREATE UNIQUE INDEX `webhook_webhook_id_unique` ON `webhook` (`webhook_id`);--> statement-breakpoint
CREATE INDEX `webhook_by_caller` ON `webhook` (`caller_id`);--> statement-breakpoint
CREATE TABLE `webhook_delivery` (
	`webhook` integer NOT NULL,
	`sequence` integer NOT NULL,
	`type` text NOT NULL,
	`resource` text NOT NULL,
	`event_at_s` integer NOT NULL,
	`status` text NOT NULL,
	`attempts` integer NOT NULL,
	`last_attempt_at_ms` integer,
	`next_attempt_at_ms` integer,
	`http_status` integer,
	`response` blob,
	`error` text,
	PRIMARY KEY(`webhook`, `sequence`),
	FOREIGN KEY (`webhook`) REFERENCES `webhook`(`id`) ON UPDATE no action ON DELETE no action
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `webhook_delivery_due` ON `webhook_delivery` (`webhook`,`next_attempt_at_ms`) WHERE "webhook_delivery"."status" = 'PENDING';--> statement-breakpoint
CREATE INDEX `webhook_delivery_open` ON `webhook_delivery` (`webhook`,`resource`,`sequence`,`status`) WHERE "webhook_delivery"."status" IN ('PENDING', 'WAITING');--> statement-breakpoint
CREATE TABLE `evidence_link` (
	`id` integer PRIMARY KEY NOT NULL,
	`link_id` text NOT NULL,
	`filing_no` text NOT NULL,
	`sequence` integer NOT NULL,
	`caller_id` integer NOT NULL,
	`created_at_s` integer NOT NULL,
	`expires_at_s` integer NOT NULL,
	`revoked_at_s` integer,
	FOREIGN KEY (`caller_id`) REFERENCES `caller`(`id`) ON UPDATE no action ON DELETE no action
) STRICT;
--> statement-breakpoint
CREATE UNIQUE INDEX `evidence_link_link_id_unique` ON `evidence_link` (`link_id`);--> statement-breakpoint
CREATE INDEX `evidence_link_by_filing` ON `evidence_link` (`filing_no`);--> statement-breakpoint
CREATE INDEX `evidence_link_by_end` ON `evidence_link` (`expires_at_s`);--> statement-breakpoint
CREATE TABLE `filing` (
	`id` integer PRIMARY KEY NOT NULL,
	`filing_no` text NOT NULL,
	`caller_id` integer NOT NULL,
	`author` text NOT NULL,
	`era` text NOT NULL,
	`size` text NOT NULL,
	`material` text NOT NULL,
	`condition` text NOT NULL,
	`price` integer NOT NULL,
	`hash` text NOT NULL,
	`timestamp` text NOT NULL,
	`filed_at_s` integer NOT NULL,
	`previous_id` integer,
	`salt` blob,
	`leaf_index` integer NOT NULL,
	`erased_at_s` integer,
	FOREIGN KEY (`caller_id`) REFERENCES `caller`(`id`) ON UPDATE no action ON DELETE no action
) STRICT;
--> statement-breakpoint
CREATE UNIQUE INDEX `filing_filing_no_unique` ON `filing` (`filing_no`);--> statement-breakpoint
CREATE TABLE `latest_filing` (
	`caller_id` integer NOT NULL,
	`year` integer NOT NULL,
	`filing_id` integer NOT NULL,
	`filings` integer DEFAULT 0 NOT NULL,
	PRIMARY KEY(`caller_id`, `year`)
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `log_checkpoint` (
	`size` integer PRIMARY KEY NOT NULL,
	`note` text NOT NULL,
	`published_at_s` integer NOT NULL,
	`time_stamp` blob
) STRICT;
--> statement-breakpoint
CREATE TABLE `log_event` (
	`sequence` integer PRIMARY KEY NOT NULL,
	`kind` text NOT NULL,
	`detail` text NOT NULL,
	`time_s` integer NOT NULL,
	`leaf_index` integer NOT NULL
) STRICT;
--> statement-breakpoint
CREATE TABLE `log_key` (
	`id` integer PRIMARY KEY NOT NULL,
	`vkey` text NOT NULL,
	`sealed_seed` blob NOT NULL,
	`added_at_s` integer NOT NULL,
	`ends_at_s` integer
) STRICT;
--> statement-breakpoint
CREATE UNIQUE INDEX `log_key_vkey_unique` ON `log_key` (`vkey`);--> statement-breakpoint
CREATE TABLE `log_leaf` (
	`id` integer PRIMARY KEY NOT NULL,
	`data` text NOT NULL,
	`hashes` blob NOT NULL,
	`first` integer NOT NULL
) STRICT;
--> statement-breakpoint
CREATE TABLE `log_origin` (
	`id` integer PRIMARY KEY NOT NULL,
	`origin` text NOT NULL,
	`first_size` integer NOT NULL
) STRICT;
--> statement-breakpoint
CREATE TABLE `provenance_record` (
	`filing_no` text NOT NULL,
	`position` integer NOT NULL,
	`event` text NOT NULL,
	`at` text NOT NULL,
	`recorded_at_s` integer NOT NULL,
	`salt` blob,
	`leaf_index` integer NOT NULL,
	PRIMARY KEY(`filing_no`, `position`)
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `escrow` (
	`id` integer PRIMARY KEY NOT NULL,
	`escrow_id` text NOT NULL,
	`filing_no` text NOT NULL,
	`caller_id` integer NOT NULL,
	`type` text NOT NULL,
	`amount` integer NOT NULL,
	`buyer_id` text NOT NULL,
	`seller_id` text NOT NULL,
	`state` text NOT NULL,
	`timestamp` text NOT NULL,
	`reference` text,
	`look_up_at_ms` integer,
	`failed_attempts` integer DEFAULT 0 NOT NULL,
	`review` text,
	`found_status` text,
	`found_amount` integer,
	`found_currency` text,
	`accepted` integer DEFAULT false NOT NULL,
	`notification_count` integer DEFAULT 0 NOT NULL,
	`buyer_party_id` integer,
	`seller_party_id` integer,
	`hold_expires_at_s` integer,
	`next_action_url` text,
	`next_action_until_ms` integer,
	`notified_hold_end_s` integer,
	FOREIGN KEY (`filing_no`) REFERENCES `filing`(`filing_no`) ON UPDATE no action ON DELETE no action,
	FOREIGN KEY (`caller_id`) REFERENCES `caller`(`id`) ON UPDATE no action ON DELETE no action,
	FOREIGN KEY (`buyer_party_id`) REFERENCES `party`(`id`) ON UPDATE no action ON DELETE no action,
	FOREIGN KEY (`seller_party_id`) REFERENCES `party`(`id`) ON UPDATE no action ON DELETE no action
) STRICT;
--> statement-breakpoint
CREATE UNIQUE INDEX `escrow_escrow_id_unique` ON `escrow` (`escrow_id`);--> statement-breakpoint
CREATE INDEX `escrow_by_caller` ON `escrow` (`caller_id`);--> statement-breakpoint
CREATE INDEX `escrow_by_caller_and_state` ON `escrow` (`caller_id`,`state`);--> statement-breakpoint
CREATE INDEX `escrow_by_filing` ON `escrow` (`filing_no`);--> statement-breakpoint
CREATE INDEX `escrow_by_state` ON `escrow` (`state`);--> statement-breakpoint
CREATE INDEX `escrow_by_look_up` ON `escrow` (`look_up_at_ms`) WHERE "escrow"."look_up_at_ms" IS NOT NULL;--> statement-breakpoint
CREATE INDEX `escrow_due` ON `escrow` (`caller_id`,("failed_attempts" > 0),`look_up_at_ms`) WHERE "escrow"."look_up_at_ms" IS NOT NULL;--> statement-breakpoint
CREATE INDEX `escrow_by_reference` ON `escrow` (`reference`) WHERE "escrow"."reference" IS NOT NULL;--> statement-breakpoint
CREATE INDEX `escrow_hold_end` ON `escrow` (`hold_expires_at_s`) WHERE "escrow"."state" = 'FROZEN';--> statement-breakpoint
CREATE INDEX `escrow_in_review` ON `escrow` (`id`) WHERE "escrow"."review" IS NOT NULL;--> statement-breakpoint
CREATE UNIQUE INDEX `escrow_active` ON `escrow` (`filing_no`) WHERE "escrow"."state" IN ('UNPAID', 'FROZEN');--> statement-breakpoint
CREATE TABLE `escrow_change` (
	`order_id` integer NOT NULL,
	`position` integer NOT NULL,
	`state` text NOT NULL,
	`at` text NOT NULL,
	`changed_at_s` integer NOT NULL,
	`payment` text,
	`payment_amount` integer,
	`by_operator` integer DEFAULT false NOT NULL,
	PRIMARY KEY(`order_id`, `position`),
	FOREIGN KEY (`order_id`) REFERENCES `escrow`(`id`) ON UPDATE no action ON DELETE no action
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `escrow_instruction` (
	`id` integer PRIMARY KEY NOT NULL,
	`instruction_id` text NOT NULL,
	`order_id` integer NOT NULL,
	`kind` text NOT NULL,
	`status` text NOT NULL,
	`prepared_at_ms` integer NOT NULL,
	`reason` text,
	FOREIGN KEY (`order_id`) REFERENCES `escrow`(`id`) ON UPDATE no action ON DELETE no action
) STRICT;
--> statement-breakpoint
CREATE UNIQUE INDEX `escrow_instruction_instruction_id_unique` ON `escrow_instruction` (`instruction_id`);--> statement-breakpoint
CREATE INDEX `escrow_instruction_by_order` ON `escrow_instruction` (`order_id`);--> statement-breakpoint
CREATE INDEX `escrow_instruction_open` ON `escrow_instruction` (`order_id`) WHERE "escrow_instruction"."status" IN ('PREPARED', 'SENT', 'UNKNOWN');--> statement-breakpoint
CREATE UNIQUE INDEX `escrow_freeze` ON `escrow_instruction` (`order_id`) WHERE "escrow_instruction"."kind" = 'FREEZE';--> statement-breakpoint
CREATE UNIQUE INDEX `escrow_release_open` ON `escrow_instruction` (`order_id`) WHERE "escrow_instruction"."kind" = 'RELEASE' AND "escrow_instruction"."status" IN ('PREPARED', 'SENT', 'UNKNOWN');--> statement-breakpoint
CREATE UNIQUE INDEX `escrow_return_open` ON `escrow_instruction` (`order_id`) WHERE "escrow_instruction"."kind" IN ('REFUND', 'CANCEL') AND "escrow_instruction"."status" IN ('PREPARED', 'SENT', 'UNKNOWN');--> statement-breakpoint
CREATE UNIQUE INDEX `escrow_resolution_paid` ON `escrow_instruction` (`order_id`) WHERE "escrow_instruction"."kind" IN ('RELEASE', 'REFUND') AND "escrow_instruction"."status" = 'CONFIRMED';--> statement-breakpoint
CREATE TABLE `provider_notification` (
	`event_id` text PRIMARY KEY NOT NULL,
	`received_at_s` integer NOT NULL
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `provider_notification_by_age` ON `provider_notification` (`received_at_s`);--> statement-breakpoint
-- The oldest version that can use this database.
INSERT INTO `oldest_version` (`id`, `schema`, `version`) VALUES (1, 1, '1.0.0-rc.1');
--> statement-breakpoint
-- Triggers reject a change or removal of what must stay as it was written, by any connection.
CREATE TRIGGER `escrow_change_is_retained` BEFORE DELETE ON `escrow_change`
WHEN OLD.`changed_at_s` > unixepoch('now', '-5 years')
BEGIN SELECT RAISE(ABORT, 'the history of an order is kept for five years'); END;
--> statement-breakpoint
CREATE TRIGGER `escrow_change_never_changes` BEFORE UPDATE ON `escrow_change`
BEGIN SELECT RAISE(ABORT, 'a state of an order never changes'); END;
--> statement-breakpoint
CREATE TRIGGER `escrow_change_never_replaced` BEFORE INSERT ON `escrow_change`
WHEN EXISTS (SELECT 1 FROM `escrow_change` WHERE `order_id` = NEW.`order_id` AND `position` = NEW.`position`)
BEGIN SELECT RAISE(ABORT, 'a state of an order is never replaced'); END;
--> statement-breakpoint
CREATE TRIGGER `event_log_follows` BEFORE INSERT ON `event_log`
WHEN NEW.`first` > NEW.`id` OR NEW.`first` <= (SELECT coalesce(max(`id`), 0) FROM `event_log`)
BEGIN SELECT RAISE(ABORT, 'an event follows those before it'); END;
--> statement-breakpoint
CREATE TRIGGER `event_log_never_changes` BEFORE UPDATE ON `event_log`
BEGIN SELECT RAISE(ABORT, 'an event never changes'); END;
--> statement-breakpoint
CREATE TRIGGER `filing_is_latest` AFTER INSERT ON `filing`
BEGIN
  INSERT INTO `latest_filing` (`caller_id`, `year`, `filing_id`, `filings`)
  VALUES (NEW.`caller_id`, CAST(substr(NEW.`filing_no`, 4, 4) AS integer), NEW.`id`, 1)
  ON CONFLICT DO UPDATE SET `filings` = `filings` + 1, `filing_id` = iif(
    `filing_id` IS NEW.`previous_id`, NEW.`id`, RAISE(ABORT, 'a filing names the one before it')
  );
END;
--> statement-breakpoint
CREATE TRIGGER `filing_is_retained` BEFORE DELETE ON `filing`
WHEN OLD.`filed_at_s` > unixepoch('now', '-5 years')
BEGIN SELECT RAISE(ABORT, 'a filing is kept for five years'); END;
--> statement-breakpoint
CREATE TRIGGER `filing_never_changes` BEFORE UPDATE ON `filing`
WHEN NEW.`id` <> OLD.`id` OR NEW.`filing_no` <> OLD.`filing_no` OR NEW.`caller_id` <> OLD.`caller_id`
  OR NEW.`timestamp` <> OLD.`timestamp` OR NEW.`filed_at_s` <> OLD.`filed_at_s`
  OR NEW.`previous_id` IS NOT OLD.`previous_id` OR NEW.`leaf_index` <> OLD.`leaf_index`
  -- Only erasing it is left, as a whole and once.
  OR NEW.`erased_at_s` IS NULL OR OLD.`erased_at_s` IS NOT NULL OR OLD.`filed_at_s` > unixepoch('now', '-5 years')
  OR NEW.`salt` IS NOT NULL OR NEW.`price` <> 0 OR NEW.`hash` <> ''
  OR NEW.`author` || NEW.`era` || NEW.`size` || NEW.`material` || NEW.`condition` <> ''
BEGIN SELECT RAISE(ABORT, 'a filing never changes'); END;
--> statement-breakpoint
CREATE TRIGGER `filing_never_replaced` BEFORE INSERT ON `filing`
BEGIN
  SELECT RAISE(ABORT, 'a filing is never replaced') FROM `filing` WHERE `filing_no` = NEW.`filing_no`;
  SELECT RAISE(ABORT, 'a filing is never replaced') FROM `filing` WHERE `id` = NEW.`id`;
END;
--> statement-breakpoint
CREATE TRIGGER `log_event_is_kept` BEFORE DELETE ON `log_event`
BEGIN SELECT RAISE(ABORT, 'a log event is kept'); END;
--> statement-breakpoint
CREATE TRIGGER `log_event_never_changes` BEFORE UPDATE ON `log_event`
BEGIN SELECT RAISE(ABORT, 'a log event never changes'); END;
--> statement-breakpoint
CREATE TRIGGER `log_event_never_replaced` BEFORE INSERT ON `log_event`
BEGIN SELECT RAISE(ABORT, 'a log event is never replaced') FROM `log_event` WHERE `sequence` = NEW.`sequence`; END;
--> statement-breakpoint
CREATE TRIGGER `log_leaf_follows` BEFORE INSERT ON `log_leaf`
WHEN NEW.`first` > NEW.`id`
  OR NEW.`first` <> (SELECT coalesce(max(`id`) + 1, 0) FROM `log_leaf`)
BEGIN SELECT RAISE(ABORT, 'a leaf of the log follows the last one'); END;
--> statement-breakpoint
CREATE TRIGGER `log_leaf_is_kept` BEFORE DELETE ON `log_leaf`
BEGIN SELECT RAISE(ABORT, 'a leaf of the log is kept'); END;
--> statement-breakpoint
CREATE TRIGGER `log_leaf_never_changes` BEFORE UPDATE ON `log_leaf`
BEGIN SELECT RAISE(ABORT, 'a leaf of the log never changes'); END;
--> statement-breakpoint
CREATE TRIGGER `log_origin_is_kept` BEFORE DELETE ON `log_origin`
BEGIN SELECT RAISE(ABORT, 'an origin of the log is kept'); END;
--> statement-breakpoint
CREATE TRIGGER `log_origin_never_changes` BEFORE UPDATE ON `log_origin`
BEGIN SELECT RAISE(ABORT, 'an origin of the log never changes'); END;
--> statement-breakpoint
CREATE TRIGGER `log_origin_never_replaced` BEFORE INSERT ON `log_origin`
BEGIN SELECT RAISE(ABORT, 'an origin of the log is never replaced') FROM `log_origin` WHERE `id` = NEW.`id`; END;
--> statement-breakpoint
CREATE TRIGGER `number_gap_is_kept` BEFORE DELETE ON `number_gap`
BEGIN SELECT RAISE(ABORT, 'a gap in the numbers is kept'); END;
--> statement-breakpoint
CREATE TRIGGER `number_gap_never_changes` BEFORE UPDATE ON `number_gap`
BEGIN SELECT RAISE(ABORT, 'a gap in the numbers never changes'); END;
--> statement-breakpoint
CREATE TRIGGER `number_gap_never_replaced` BEFORE INSERT ON `number_gap`
WHEN EXISTS (
  SELECT 1 FROM `number_gap` WHERE `kind` = NEW.`kind` AND `year` = NEW.`year` AND `after` = NEW.`after`
)
BEGIN SELECT RAISE(ABORT, 'a gap in the numbers is never replaced'); END;
--> statement-breakpoint
CREATE TRIGGER `audit_entry_is_kept` BEFORE DELETE ON `audit_entry`
BEGIN SELECT RAISE(ABORT, 'an audit entry is kept'); END;
--> statement-breakpoint
CREATE TRIGGER `audit_entry_never_changes` BEFORE UPDATE ON `audit_entry`
BEGIN SELECT RAISE(ABORT, 'an audit entry never changes'); END;
--> statement-breakpoint
CREATE TRIGGER `audit_entry_never_replaced` BEFORE INSERT ON `audit_entry`
WHEN EXISTS (SELECT 1 FROM `audit_entry` WHERE `id` = NEW.`id`)
BEGIN SELECT RAISE(ABORT, 'an audit entry is never replaced'); END;
--> statement-breakpoint
CREATE TRIGGER `party_is_kept` BEFORE DELETE ON `party`
BEGIN SELECT RAISE(ABORT, 'a party is kept'); END;
--> statement-breakpoint
CREATE TRIGGER `party_never_changes` BEFORE UPDATE ON `party`
WHEN OLD.`removed_at_s` IS NOT NULL OR NEW.`id` <> OLD.`id` OR NEW.`caller_id` <> OLD.`caller_id`
  OR NEW.`role` <> OLD.`role` OR NEW.`party_id` <> OLD.`party_id` OR NEW.`provider_ids` <> OLD.`provider_ids`
  OR NEW.`added_at_s` <> OLD.`added_at_s`
BEGIN SELECT RAISE(ABORT, 'a party never changes, it is removed'); END;
--> statement-breakpoint
CREATE TRIGGER `party_never_replaced` BEFORE INSERT ON `party`
WHEN EXISTS (SELECT 1 FROM `party` WHERE `id` = NEW.`id`)
BEGIN SELECT RAISE(ABORT, 'a party is never replaced'); END;
--> statement-breakpoint
CREATE TRIGGER `provenance_record_is_retained` BEFORE DELETE ON `provenance_record`
WHEN OLD.`recorded_at_s` > unixepoch('now', '-5 years')
BEGIN SELECT RAISE(ABORT, 'a provenance record is kept for five years'); END;
--> statement-breakpoint
CREATE TRIGGER `provenance_record_never_changes` BEFORE UPDATE ON `provenance_record`
WHEN NEW.`filing_no` <> OLD.`filing_no` OR NEW.`position` <> OLD.`position` OR NEW.`event` <> OLD.`event`
  OR NEW.`at` <> OLD.`at` OR NEW.`recorded_at_s` <> OLD.`recorded_at_s` OR NEW.`leaf_index` <> OLD.`leaf_index`
  -- Only erasing its salt is left, once.
  OR NEW.`salt` IS NOT NULL OR OLD.`salt` IS NULL OR OLD.`recorded_at_s` > unixepoch('now', '-5 years')
BEGIN SELECT RAISE(ABORT, 'a provenance record never changes'); END;
--> statement-breakpoint
CREATE TRIGGER `provenance_record_never_replaced` BEFORE INSERT ON `provenance_record`
WHEN EXISTS (SELECT 1 FROM `provenance_record` WHERE `filing_no` = NEW.`filing_no` AND `position` = NEW.`position`)
BEGIN SELECT RAISE(ABORT, 'a provenance record is never replaced'); END;
--> statement-breakpoint
CREATE TRIGGER `restoration_is_kept` BEFORE DELETE ON `restoration`
BEGIN SELECT RAISE(ABORT, 'a restoration is kept'); END;
--> statement-breakpoint
CREATE TRIGGER `restoration_never_changes` BEFORE UPDATE ON `restoration`
WHEN OLD.`served_at_s` IS NOT NULL OR NEW.`id` <> OLD.`id` OR NEW.`taken_at_s` <> OLD.`taken_at_s`
  OR NEW.`restored_at_s` <> OLD.`restored_at_s`
BEGIN SELECT RAISE(ABORT, 'a restoration never changes'); END;
--> statement-breakpoint
CREATE TRIGGER `restoration_never_replaced` BEFORE INSERT ON `restoration`
WHEN EXISTS (SELECT 1 FROM `restoration` WHERE `id` = NEW.`id`)
BEGIN SELECT RAISE(ABORT, 'a restoration is never replaced'); END;
