CREATE TABLE `registration` (
	`id` integer PRIMARY KEY NOT NULL,
	`registration_id` text NOT NULL,
	`email_digest` blob NOT NULL,
	`email` text NOT NULL,
	`name` text NOT NULL,
	`intended_use` text NOT NULL,
	`tier` text NOT NULL,
	`by_form` integer NOT NULL,
	`registered_at_s` integer NOT NULL,
	`appointment_at_s` integer,
	`caller_id` integer,
	`link_sha256` blob,
	`link_expires_at_s` integer,
	`claimed_at_s` integer,
	`notice` text,
	`notice_attempt` text,
	`notice_at_s` integer,
	`notice_detail` text,
	`removed_at_s` integer,
	FOREIGN KEY (`caller_id`) REFERENCES `caller`(`id`) ON UPDATE no action ON DELETE no action
) STRICT;
--> statement-breakpoint
CREATE UNIQUE INDEX `registration_registration_id_unique` ON `registration` (`registration_id`);--> statement-breakpoint
CREATE UNIQUE INDEX `registration_email_digest_unique` ON `registration` (`email_digest`);--> statement-breakpoint
CREATE UNIQUE INDEX `registration_link_sha256_unique` ON `registration` (`link_sha256`);--> statement-breakpoint
CREATE INDEX `registration_due` ON `registration` (`id`) WHERE "registration"."notice" IS NULL;--> statement-breakpoint
CREATE INDEX `registration_sending` ON `registration` (`id`) WHERE "registration"."notice" = 'SENDING';--> statement-breakpoint
CREATE INDEX `registration_by_form` ON `registration` (`id`) WHERE "registration"."by_form" = 1;