-- Filings and provenance records are append-only, whoever writes to the file. INSERT OR REPLACE deletes without firing
-- delete triggers where recursive_triggers is off, hence the insert triggers.
CREATE TRIGGER `filing_never_changes` BEFORE UPDATE ON `filing`
BEGIN SELECT RAISE(ABORT, 'a filing never changes'); END;
--> statement-breakpoint
CREATE TRIGGER `filing_never_replaced` BEFORE INSERT ON `filing`
WHEN EXISTS (SELECT 1 FROM `filing` WHERE `filing_no` = NEW.`filing_no` OR `id` = NEW.`id`)
BEGIN SELECT RAISE(ABORT, 'a filing is never replaced'); END;
--> statement-breakpoint
CREATE TRIGGER `filing_is_retained` BEFORE DELETE ON `filing`
WHEN OLD.`filed_at_s` > unixepoch('now', '-5 years')
BEGIN SELECT RAISE(ABORT, 'a filing is kept for five years'); END;
--> statement-breakpoint
CREATE TRIGGER `provenance_record_never_changes` BEFORE UPDATE ON `provenance_record`
BEGIN SELECT RAISE(ABORT, 'a provenance record never changes'); END;
--> statement-breakpoint
CREATE TRIGGER `provenance_record_never_replaced` BEFORE INSERT ON `provenance_record`
WHEN EXISTS (SELECT 1 FROM `provenance_record` WHERE `filing_no` = NEW.`filing_no` AND `position` = NEW.`position`)
BEGIN SELECT RAISE(ABORT, 'a provenance record is never replaced'); END;
--> statement-breakpoint
CREATE TRIGGER `provenance_record_is_retained` BEFORE DELETE ON `provenance_record`
WHEN OLD.`recorded_at_s` > unixepoch('now', '-5 years')
BEGIN SELECT RAISE(ABORT, 'a provenance record is kept for five years'); END;
