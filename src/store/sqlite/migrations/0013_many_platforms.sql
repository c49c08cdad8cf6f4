-- STRICT, triggers, and the scopes of the tokens that were there are added by hand.
CREATE TABLE `operator_act` (
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
CREATE TABLE `party` (
	`id` integer PRIMARY KEY NOT NULL,
	`caller_id` integer NOT NULL,
	`role` text NOT NULL,
	`party_id` text NOT NULL,
	`names` text NOT NULL,
	`added_at_s` integer NOT NULL,
	`removed_at_s` integer,
	FOREIGN KEY (`caller_id`) REFERENCES `caller`(`id`) ON UPDATE no action ON DELETE no action
) STRICT;
--> statement-breakpoint
CREATE UNIQUE INDEX `party_known` ON `party` (`caller_id`,`role`,`party_id`) WHERE "party"."removed_at_s" IS NULL;--> statement-breakpoint
ALTER TABLE `escrow` ADD `buyer_party_id` integer REFERENCES party(id);--> statement-breakpoint
ALTER TABLE `escrow` ADD `seller_party_id` integer REFERENCES party(id);--> statement-breakpoint
ALTER TABLE `escrow` ADD `hold_expires_at_s` integer;--> statement-breakpoint
ALTER TABLE `escrow` ADD `next_action_url` text;--> statement-breakpoint
ALTER TABLE `escrow` ADD `next_action_until_ms` integer;--> statement-breakpoint
CREATE INDEX `escrow_due` ON `escrow` (`caller_id`,("failed_attempts" > 0),`look_up_at_ms`) WHERE "escrow"."look_up_at_ms" IS NOT NULL;--> statement-breakpoint
CREATE INDEX `escrow_by_reference` ON `escrow` (`reference`) WHERE "escrow"."reference" IS NOT NULL;--> statement-breakpoint
CREATE INDEX `escrow_hold_end` ON `escrow` (`hold_expires_at_s`) WHERE "escrow"."state" = 'FROZEN';--> statement-breakpoint
ALTER TABLE `escrow_change` ADD `payment` text;--> statement-breakpoint
ALTER TABLE `escrow_change` ADD `payment_amount` integer;--> statement-breakpoint
ALTER TABLE `escrow_instruction` ADD `reason` text;--> statement-breakpoint
ALTER TABLE `service_token` ADD `scopes` text DEFAULT '' NOT NULL;--> statement-breakpoint
ALTER TABLE `service_token` ADD `expires_at_s` integer;--> statement-breakpoint
ALTER TABLE `service_token` ADD `platform_id` integer REFERENCES caller(id);--> statement-breakpoint
UPDATE `service_token` SET `scopes` = iif(`operator`, 'read file escrow operate ', 'read file escrow ');--> statement-breakpoint
ALTER TABLE `service_token` DROP COLUMN `operator`;--> statement-breakpoint
CREATE TRIGGER `party_never_changes` BEFORE UPDATE ON `party`
WHEN OLD.`removed_at_s` IS NOT NULL OR NEW.`id` <> OLD.`id` OR NEW.`caller_id` <> OLD.`caller_id`
  OR NEW.`role` <> OLD.`role` OR NEW.`party_id` <> OLD.`party_id` OR NEW.`names` <> OLD.`names`
  OR NEW.`added_at_s` <> OLD.`added_at_s`
BEGIN SELECT RAISE(ABORT, 'a party never changes, it is removed'); END;
--> statement-breakpoint
CREATE TRIGGER `party_never_replaced` BEFORE INSERT ON `party`
WHEN EXISTS (SELECT 1 FROM `party` WHERE `id` = NEW.`id`)
BEGIN SELECT RAISE(ABORT, 'a party is never replaced'); END;
--> statement-breakpoint
CREATE TRIGGER `party_is_kept` BEFORE DELETE ON `party`
BEGIN SELECT RAISE(ABORT, 'a party is kept'); END;
--> statement-breakpoint
CREATE TRIGGER `operator_act_never_changes` BEFORE UPDATE ON `operator_act`
BEGIN SELECT RAISE(ABORT, 'an act of an operator never changes'); END;
--> statement-breakpoint
CREATE TRIGGER `operator_act_never_replaced` BEFORE INSERT ON `operator_act`
WHEN EXISTS (SELECT 1 FROM `operator_act` WHERE `id` = NEW.`id`)
BEGIN SELECT RAISE(ABORT, 'an act of an operator is never replaced'); END;
--> statement-breakpoint
CREATE TRIGGER `operator_act_is_kept` BEFORE DELETE ON `operator_act`
BEGIN SELECT RAISE(ABORT, 'an act of an operator is kept'); END;
