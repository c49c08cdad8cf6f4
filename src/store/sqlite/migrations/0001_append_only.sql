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
  INSERT INTO `latest_filing` VALUES (NEW.`caller_id`, CAST(substr(NEW.`filing_no`, 4, 4) AS integer), NEW.`id`, 1)
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
