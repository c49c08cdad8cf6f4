ALTER TABLE `evidence_link` ADD `disclose` text;--> statement-breakpoint
ALTER TABLE `filing` ADD `record_version` integer DEFAULT 1 NOT NULL;--> statement-breakpoint
ALTER TABLE `filing` ADD `attachments` text;--> statement-breakpoint
DROP TRIGGER `filing_never_changes`;
--> statement-breakpoint
CREATE TRIGGER `filing_never_changes` BEFORE UPDATE ON `filing`
WHEN NEW.`id` <> OLD.`id` OR NEW.`filing_no` <> OLD.`filing_no` OR NEW.`caller_id` <> OLD.`caller_id`
  OR NEW.`timestamp` <> OLD.`timestamp` OR NEW.`filed_at_s` <> OLD.`filed_at_s`
  OR NEW.`previous_id` IS NOT OLD.`previous_id` OR NEW.`leaf_index` <> OLD.`leaf_index`
  OR NEW.`record_version` <> OLD.`record_version`
  -- Only erasing it is left, as a whole and once.
  OR NEW.`erased_at_s` IS NULL OR OLD.`erased_at_s` IS NOT NULL OR OLD.`filed_at_s` > unixepoch('now',
    coalesce((SELECT `clock_ahead_s` FROM `deployment`), 0) || ' seconds', '-5 years')
  OR NEW.`salt` IS NOT NULL OR NEW.`attachments` IS NOT NULL OR NEW.`price` <> 0 OR NEW.`hash` <> ''
  OR NEW.`author` || NEW.`era` || NEW.`size` || NEW.`material` || NEW.`condition` <> ''
BEGIN SELECT RAISE(ABORT, 'a filing never changes'); END;
--> statement-breakpoint
-- Earlier versions cannot check records of version 2.
UPDATE `oldest_version` SET `schema` = 4, `version` = '1.0.0-rc.2';
