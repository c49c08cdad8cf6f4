-- STRICT and triggers are added by hand. The records that are there become leaves behind all migrations, in the same transaction.
CREATE TABLE `log_act` (
	`sequence` integer PRIMARY KEY NOT NULL,
	`kind` text NOT NULL,
	`detail` text NOT NULL,
	`time_s` integer NOT NULL,
	`leaf_index` integer NOT NULL
) STRICT;
--> statement-breakpoint
CREATE TABLE `log_checkpoint` (
	`size` integer PRIMARY KEY NOT NULL,
	`note` text NOT NULL,
	`published_at_s` integer NOT NULL,
	`time_stamp` blob
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
	`hashes` blob NOT NULL
) STRICT;
--> statement-breakpoint
CREATE TABLE `log_origin` (
	`id` integer PRIMARY KEY NOT NULL,
	`origin` text NOT NULL,
	`first_size` integer NOT NULL
) STRICT;
--> statement-breakpoint
ALTER TABLE `filing` ADD `salt` blob;--> statement-breakpoint
ALTER TABLE `filing` ADD `leaf_index` integer;--> statement-breakpoint
ALTER TABLE `filing` ADD `erased_at_s` integer;--> statement-breakpoint
ALTER TABLE `provenance_record` ADD `salt` blob;--> statement-breakpoint
ALTER TABLE `provenance_record` ADD `leaf_index` integer;
--> statement-breakpoint
DROP TRIGGER `filing_never_changes`;
--> statement-breakpoint
-- A filing becomes a leaf once, and is erased once: when it is five years old, and then all that tells of the work.
CREATE TRIGGER `filing_never_changes` BEFORE UPDATE ON `filing`
WHEN NEW.`id` <> OLD.`id` OR NEW.`filing_no` <> OLD.`filing_no` OR NEW.`caller_id` <> OLD.`caller_id`
  OR NEW.`timestamp` <> OLD.`timestamp` OR NEW.`filed_at_s` <> OLD.`filed_at_s`
  OR NEW.`previous_id` IS NOT OLD.`previous_id`
  OR iif(NEW.`leaf_index` IS OLD.`leaf_index`, NEW.`erased_at_s` IS NULL, OLD.`leaf_index` IS NOT NULL)
  OR OLD.`erased_at_s` IS NOT NULL
  OR iif(NEW.`erased_at_s` IS NULL,
    NEW.`author` <> OLD.`author` OR NEW.`era` <> OLD.`era` OR NEW.`size` <> OLD.`size`
      OR NEW.`material` <> OLD.`material` OR NEW.`condition` <> OLD.`condition` OR NEW.`price` <> OLD.`price`
      OR NEW.`hash` <> OLD.`hash`
      OR (NEW.`salt` IS NOT OLD.`salt` AND OLD.`salt` IS NOT NULL),
    OLD.`filed_at_s` > unixepoch('now', '-5 years') OR NEW.`salt` IS NOT NULL OR NEW.`price` <> 0 OR NEW.`hash` <> ''
      OR NEW.`author` || NEW.`era` || NEW.`size` || NEW.`material` || NEW.`condition` <> '')
BEGIN SELECT RAISE(ABORT, 'a filing never changes'); END;
--> statement-breakpoint
DROP TRIGGER `provenance_record_never_changes`;
--> statement-breakpoint
CREATE TRIGGER `provenance_record_never_changes` BEFORE UPDATE ON `provenance_record`
WHEN NEW.`filing_no` <> OLD.`filing_no` OR NEW.`position` <> OLD.`position` OR NEW.`event` <> OLD.`event`
  OR NEW.`at` <> OLD.`at` OR NEW.`recorded_at_s` <> OLD.`recorded_at_s`
  OR iif(NEW.`leaf_index` IS OLD.`leaf_index`, NEW.`salt` IS OLD.`salt`, OLD.`leaf_index` IS NOT NULL)
  OR (NEW.`salt` IS NOT OLD.`salt` AND iif(OLD.`salt` IS NULL, NEW.`leaf_index` IS OLD.`leaf_index`,
    NEW.`salt` IS NOT NULL OR OLD.`recorded_at_s` > unixepoch('now', '-5 years')))
BEGIN SELECT RAISE(ABORT, 'a provenance record never changes'); END;
--> statement-breakpoint
CREATE TRIGGER `log_leaf_never_changes` BEFORE UPDATE ON `log_leaf`
BEGIN SELECT RAISE(ABORT, 'a leaf of the log never changes'); END;
--> statement-breakpoint
CREATE TRIGGER `log_leaf_never_replaced` BEFORE INSERT ON `log_leaf`
BEGIN SELECT RAISE(ABORT, 'a leaf of the log is never replaced') FROM `log_leaf` WHERE `id` = NEW.`id`; END;
--> statement-breakpoint
CREATE TRIGGER `log_leaf_is_kept` BEFORE DELETE ON `log_leaf`
BEGIN SELECT RAISE(ABORT, 'a leaf of the log is kept'); END;
--> statement-breakpoint
CREATE TRIGGER `log_act_never_changes` BEFORE UPDATE ON `log_act`
BEGIN SELECT RAISE(ABORT, 'an act of the log never changes'); END;
--> statement-breakpoint
CREATE TRIGGER `log_act_never_replaced` BEFORE INSERT ON `log_act`
BEGIN SELECT RAISE(ABORT, 'an act of the log is never replaced') FROM `log_act` WHERE `sequence` = NEW.`sequence`; END;
--> statement-breakpoint
CREATE TRIGGER `log_act_is_kept` BEFORE DELETE ON `log_act`
BEGIN SELECT RAISE(ABORT, 'an act of the log is kept'); END;
--> statement-breakpoint
CREATE TRIGGER `log_origin_never_changes` BEFORE UPDATE ON `log_origin`
BEGIN SELECT RAISE(ABORT, 'an origin of the log never changes'); END;
--> statement-breakpoint
CREATE TRIGGER `log_origin_never_replaced` BEFORE INSERT ON `log_origin`
BEGIN SELECT RAISE(ABORT, 'an origin of the log is never replaced') FROM `log_origin` WHERE `id` = NEW.`id`; END;
--> statement-breakpoint
CREATE TRIGGER `log_origin_is_kept` BEFORE DELETE ON `log_origin`
BEGIN SELECT RAISE(ABORT, 'an origin of the log is kept'); END;
