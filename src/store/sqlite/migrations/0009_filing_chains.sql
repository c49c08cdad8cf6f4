-- STRICT and WITHOUT ROWID, what the filings that are there get, and the trigger added by hand.
CREATE TABLE `latest_filing` (
	`caller_id` integer NOT NULL,
	`year` integer NOT NULL,
	`filing_id` integer NOT NULL,
	PRIMARY KEY(`caller_id`, `year`)
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
ALTER TABLE `filing` ADD `previous_id` integer;
--> statement-breakpoint
-- The year of a filing is that of its number, AS-<year>-<6 digits>.
DROP TRIGGER `filing_never_changes`;
--> statement-breakpoint
UPDATE `filing` SET `previous_id` = `link`.`previous_id`
FROM (
  SELECT `id`, lag(`id`) OVER (
    PARTITION BY `caller_id`, substr(`filing_no`, 4, 4) ORDER BY `filing_no`
  ) AS `previous_id`
  FROM `filing`
) AS `link`
WHERE `link`.`id` = `filing`.`id` AND `link`.`previous_id` IS NOT NULL;
--> statement-breakpoint
CREATE TRIGGER `filing_never_changes` BEFORE UPDATE ON `filing`
BEGIN SELECT RAISE(ABORT, 'a filing never changes'); END;
--> statement-breakpoint
INSERT INTO `latest_filing`
SELECT `caller_id`, CAST(substr(`filing_no`, 4, 4) AS integer), `id` FROM `filing`
WHERE `id` NOT IN (SELECT `previous_id` FROM `filing` WHERE `previous_id` IS NOT NULL);
--> statement-breakpoint
-- Whoever inserts a filing moves the beginning of its chain, and cannot cut off the filings before it. An upsert, since
-- the OR clause of an INSERT into filing would overrule one here.
CREATE TRIGGER `filing_is_latest` AFTER INSERT ON `filing`
BEGIN
  INSERT INTO `latest_filing` VALUES (NEW.`caller_id`, CAST(substr(NEW.`filing_no`, 4, 4) AS integer), NEW.`id`)
  ON CONFLICT DO UPDATE SET `filing_id` = iif(
    `filing_id` IS NEW.`previous_id`, NEW.`id`, RAISE(ABORT, 'a filing names the one before it')
  );
END;
--> statement-breakpoint
DROP INDEX `filing_by_caller_and_number`;
