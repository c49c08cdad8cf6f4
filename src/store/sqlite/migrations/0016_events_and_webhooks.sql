-- STRICT, WITHOUT ROWID and the trigger are added by hand. What happened before is no event.
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
	`url` text NOT NULL,
	`event_types` text NOT NULL,
	`description` text NOT NULL,
	`status` text NOT NULL,
	`disabled_why` text,
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
	`answer` blob,
	`error` text,
	PRIMARY KEY(`webhook`, `sequence`),
	FOREIGN KEY (`webhook`) REFERENCES `webhook`(`id`) ON UPDATE no action ON DELETE no action
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `webhook_delivery_due` ON `webhook_delivery` (`webhook`,`next_attempt_at_ms`) WHERE "webhook_delivery"."status" = 'PENDING';--> statement-breakpoint
CREATE INDEX `webhook_delivery_open` ON `webhook_delivery` (`webhook`,`resource`,`sequence`,`status`) WHERE "webhook_delivery"."status" IN ('PENDING', 'WAITING');--> statement-breakpoint
ALTER TABLE `deployment` ADD `newest_webhook` integer DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE `escrow` ADD `told_hold_end_s` integer;
--> statement-breakpoint
CREATE TRIGGER `event_log_follows` BEFORE INSERT ON `event_log`
WHEN NEW.`first` > NEW.`id` OR NEW.`first` <= (SELECT coalesce(max(`id`), 0) FROM `event_log`)
BEGIN SELECT RAISE(ABORT, 'an event follows those before it'); END;
--> statement-breakpoint
CREATE TRIGGER `event_log_never_changes` BEFORE UPDATE ON `event_log`
BEGIN SELECT RAISE(ABORT, 'an event never changes'); END;
--> statement-breakpoint
-- Where an upgrade was taken back, the header of the file tells the million behind which events go on.
INSERT INTO `event_head`
SELECT `id`, `application_id` * 1000000, iif(`id` = 0, `application_id` * 1000000, 0)
FROM (SELECT `id` FROM `caller` UNION SELECT 0), pragma_application_id WHERE `application_id` > 0;
