ALTER TABLE `idempotency_key` ADD `outcome` blob;--> statement-breakpoint
ALTER TABLE `idempotency_key` DROP COLUMN `status`;--> statement-breakpoint
ALTER TABLE `idempotency_key` DROP COLUMN `body`;