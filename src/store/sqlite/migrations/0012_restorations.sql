-- STRICT, WITHOUT ROWID and triggers added by hand.
CREATE TABLE `restoration` (
	`id` integer PRIMARY KEY NOT NULL,
	`taken_at_s` integer NOT NULL,
	`restored_at_s` integer NOT NULL,
	`served_at_s` integer
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
CREATE TRIGGER `restoration_never_changes` BEFORE UPDATE ON `restoration`
WHEN OLD.`served_at_s` IS NOT NULL OR NEW.`id` <> OLD.`id` OR NEW.`taken_at_s` <> OLD.`taken_at_s`
  OR NEW.`restored_at_s` <> OLD.`restored_at_s`
BEGIN SELECT RAISE(ABORT, 'a restoration never changes'); END;
--> statement-breakpoint
CREATE TRIGGER `restoration_never_replaced` BEFORE INSERT ON `restoration`
WHEN EXISTS (SELECT 1 FROM `restoration` WHERE `id` = NEW.`id`)
BEGIN SELECT RAISE(ABORT, 'a restoration is never replaced'); END;
--> statement-breakpoint
CREATE TRIGGER `restoration_is_kept` BEFORE DELETE ON `restoration`
BEGIN SELECT RAISE(ABORT, 'a restoration is kept'); END;
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
CREATE TRIGGER `number_gap_is_kept` BEFORE DELETE ON `number_gap`
BEGIN SELECT RAISE(ABORT, 'a gap in the numbers is kept'); END;
