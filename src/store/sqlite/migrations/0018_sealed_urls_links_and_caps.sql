-- STRICT, the trigger, and what the rows that are there get are added by hand.
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
ALTER TABLE `caller` ADD `filing_cap` integer;--> statement-breakpoint
CREATE INDEX `caller_capped` ON `caller` (`id`) WHERE "caller"."filing_cap" IS NOT NULL;--> statement-breakpoint
ALTER TABLE `deployment` ADD `plain_urls` integer DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE `latest_filing` ADD `filings` integer DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE `webhook` ADD `sealed_url` blob;
--> statement-breakpoint
-- The keys that URLs are sealed with are not known here: the first process that has them seals the URLs.
UPDATE `deployment` SET `plain_urls` = 1 WHERE `newest_webhook` > 0;
--> statement-breakpoint
-- An endpoint that a repeated call is to be given again, with its URL. Without it the key counts as used for another request.
UPDATE `idempotency_key` SET `outcome` = NULL
WHERE instr(`outcome`, CAST('webhookId' AS blob)) > 0 AND instr(`outcome`, CAST('disabledWhy' AS blob)) > 0;
--> statement-breakpoint
UPDATE `latest_filing` SET `filings` = `counted`.`filings`
FROM (
  SELECT `caller_id`, CAST(substr(`filing_no`, 4, 4) AS integer) AS `year`, count(*) AS `filings` FROM `filing` GROUP BY 1, 2
) AS `counted`
WHERE `counted`.`caller_id` = `latest_filing`.`caller_id` AND `counted`.`year` = `latest_filing`.`year`;
--> statement-breakpoint
DROP TRIGGER `filing_is_latest`;
--> statement-breakpoint
CREATE TRIGGER `filing_is_latest` AFTER INSERT ON `filing`
BEGIN
  INSERT INTO `latest_filing` VALUES (NEW.`caller_id`, CAST(substr(NEW.`filing_no`, 4, 4) AS integer), NEW.`id`, 1)
  ON CONFLICT DO UPDATE SET `filings` = `filings` + 1, `filing_id` = iif(
    `filing_id` IS NEW.`previous_id`, NEW.`id`, RAISE(ABORT, 'a filing names the one before it')
  );
END;
