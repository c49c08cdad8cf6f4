ALTER TABLE `deployment` ADD `clock_ahead_s` integer DEFAULT 0 NOT NULL;--> statement-breakpoint
CREATE TRIGGER `deployment_clock_goes_forward` BEFORE UPDATE OF `clock_ahead_s` ON `deployment`
WHEN NEW.`clock_ahead_s` < OLD.`clock_ahead_s` OR OLD.`environment` <> 'sandbox'
BEGIN SELECT RAISE(ABORT, 'only the clock of a sandbox is advanced, and it never goes back'); END;
--> statement-breakpoint
-- In a sandbox, the retention of records ends by its clock.
DROP TRIGGER `filing_never_changes`;
--> statement-breakpoint
CREATE TRIGGER `filing_never_changes` BEFORE UPDATE ON `filing`
WHEN NEW.`id` <> OLD.`id` OR NEW.`filing_no` <> OLD.`filing_no` OR NEW.`caller_id` <> OLD.`caller_id`
  OR NEW.`timestamp` <> OLD.`timestamp` OR NEW.`filed_at_s` <> OLD.`filed_at_s`
  OR NEW.`previous_id` IS NOT OLD.`previous_id` OR NEW.`leaf_index` <> OLD.`leaf_index`
  -- Only erasing it is left, as a whole and once.
  OR NEW.`erased_at_s` IS NULL OR OLD.`erased_at_s` IS NOT NULL OR OLD.`filed_at_s` > unixepoch('now',
    coalesce((SELECT `clock_ahead_s` FROM `deployment`), 0) || ' seconds', '-5 years')
  OR NEW.`salt` IS NOT NULL OR NEW.`price` <> 0 OR NEW.`hash` <> ''
  OR NEW.`author` || NEW.`era` || NEW.`size` || NEW.`material` || NEW.`condition` <> ''
BEGIN SELECT RAISE(ABORT, 'a filing never changes'); END;
--> statement-breakpoint
DROP TRIGGER `provenance_record_never_changes`;
--> statement-breakpoint
CREATE TRIGGER `provenance_record_never_changes` BEFORE UPDATE ON `provenance_record`
WHEN NEW.`filing_no` <> OLD.`filing_no` OR NEW.`position` <> OLD.`position` OR NEW.`event` <> OLD.`event`
  OR NEW.`at` <> OLD.`at` OR NEW.`recorded_at_s` <> OLD.`recorded_at_s` OR NEW.`leaf_index` <> OLD.`leaf_index`
  -- Only erasing its salt is left, once.
  OR NEW.`salt` IS NOT NULL OR OLD.`salt` IS NULL OR OLD.`recorded_at_s` > unixepoch('now',
    coalesce((SELECT `clock_ahead_s` FROM `deployment`), 0) || ' seconds', '-5 years')
BEGIN SELECT RAISE(ABORT, 'a provenance record never changes'); END;
