-- Tables as drizzle-kit generates them from schema.ts, with STRICT and WITHOUT ROWID added by hand, which it cannot say.
CREATE TABLE `api_key` (
	`id` integer PRIMARY KEY NOT NULL,
	`key_id` text NOT NULL,
	`api_key` text NOT NULL,
	`caller_id` integer NOT NULL,
	`sealed_secret` blob NOT NULL,
	`status` text NOT NULL,
	`created_at_s` integer NOT NULL,
	`expires_at_s` integer,
	FOREIGN KEY (`caller_id`) REFERENCES `caller`(`id`) ON UPDATE no action ON DELETE no action
) STRICT;
--> statement-breakpoint
CREATE UNIQUE INDEX `api_key_key_id_unique` ON `api_key` (`key_id`);--> statement-breakpoint
CREATE UNIQUE INDEX `api_key_api_key_unique` ON `api_key` (`api_key`);--> statement-breakpoint
CREATE TABLE `caller` (
	`id` integer PRIMARY KEY NOT NULL,
	`name` text NOT NULL,
	`tier` text,
	`monthly_quota` integer
) STRICT;
--> statement-breakpoint
CREATE UNIQUE INDEX `caller_name_unique` ON `caller` (`name`);--> statement-breakpoint
CREATE TABLE `deployment` (
	`id` integer PRIMARY KEY NOT NULL,
	`environment` text NOT NULL,
	`escrow_id_key` blob NOT NULL,
	CONSTRAINT "deployment_is_one_row" CHECK("deployment"."id" = 1)
) STRICT;
--> statement-breakpoint
CREATE TABLE `escrow` (
	`id` integer PRIMARY KEY NOT NULL,
	`escrow_id` text NOT NULL,
	`filing_no` text NOT NULL,
	`caller_id` integer NOT NULL,
	`type` text NOT NULL,
	`amount` integer NOT NULL,
	`buyer_id` text NOT NULL,
	`seller_id` text NOT NULL,
	`state` text NOT NULL,
	`timestamp` text NOT NULL,
	FOREIGN KEY (`filing_no`) REFERENCES `filing`(`filing_no`) ON UPDATE no action ON DELETE no action,
	FOREIGN KEY (`caller_id`) REFERENCES `caller`(`id`) ON UPDATE no action ON DELETE no action
) STRICT;
--> statement-breakpoint
CREATE UNIQUE INDEX `escrow_escrow_id_unique` ON `escrow` (`escrow_id`);--> statement-breakpoint
CREATE INDEX `escrow_by_caller` ON `escrow` (`caller_id`);--> statement-breakpoint
CREATE UNIQUE INDEX `escrow_active` ON `escrow` (`filing_no`) WHERE "escrow"."state" IN ('UNPAID', 'FROZEN');--> statement-breakpoint
CREATE TABLE `filing` (
	`id` integer PRIMARY KEY NOT NULL,
	`filing_no` text NOT NULL,
	`caller_id` integer NOT NULL,
	`author` text NOT NULL,
	`era` text NOT NULL,
	`size` text NOT NULL,
	`material` text NOT NULL,
	`condition` text NOT NULL,
	`price` integer NOT NULL,
	`hash` text NOT NULL,
	`timestamp` text NOT NULL,
	`filed_at_s` integer NOT NULL,
	FOREIGN KEY (`caller_id`) REFERENCES `caller`(`id`) ON UPDATE no action ON DELETE no action
) STRICT;
--> statement-breakpoint
CREATE UNIQUE INDEX `filing_filing_no_unique` ON `filing` (`filing_no`);--> statement-breakpoint
CREATE INDEX `filing_by_caller` ON `filing` (`caller_id`);--> statement-breakpoint
CREATE TABLE `nonce_claim` (
	`window` integer NOT NULL,
	`api_key_id` integer NOT NULL,
	`nonce` text NOT NULL,
	`claimed_at_s` integer NOT NULL,
	PRIMARY KEY(`window`, `api_key_id`, `nonce`)
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `number_sequence` (
	`kind` text NOT NULL,
	`year` integer NOT NULL,
	`last` integer NOT NULL,
	PRIMARY KEY(`kind`, `year`)
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `provenance_record` (
	`filing_no` text NOT NULL,
	`position` integer NOT NULL,
	`event` text NOT NULL,
	`at` text NOT NULL,
	`recorded_at_s` integer NOT NULL,
	PRIMARY KEY(`filing_no`, `position`)
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `service_token` (
	`id` integer PRIMARY KEY NOT NULL,
	`token_id` text NOT NULL,
	`sha256` blob NOT NULL,
	`caller_id` integer NOT NULL,
	`operator` integer NOT NULL,
	`created_at_s` integer NOT NULL,
	`revoked_at_s` integer,
	FOREIGN KEY (`caller_id`) REFERENCES `caller`(`id`) ON UPDATE no action ON DELETE no action
) STRICT;
--> statement-breakpoint
CREATE UNIQUE INDEX `service_token_token_id_unique` ON `service_token` (`token_id`);--> statement-breakpoint
CREATE UNIQUE INDEX `service_token_sha256_unique` ON `service_token` (`sha256`);--> statement-breakpoint
CREATE TABLE `usage` (
	`caller_id` integer NOT NULL,
	`month` text NOT NULL,
	`calls` integer NOT NULL,
	PRIMARY KEY(`caller_id`, `month`)
) STRICT, WITHOUT ROWID;
