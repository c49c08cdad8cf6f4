-- Tables and columns get the names that the code has for them. Renamed in place: the copy of escrow_instruction that
-- drizzle-kit makes is left out. An index has to be made again under its new name.
ALTER TABLE `escrow_operation` RENAME TO `escrow_instruction`;--> statement-breakpoint
ALTER TABLE `escrow_instruction` RENAME COLUMN "operation_id" TO "instruction_id";--> statement-breakpoint
ALTER TABLE `escrow` RENAME COLUMN "unanswered" TO "failed_attempts";--> statement-breakpoint
ALTER TABLE `escrow` RENAME COLUMN "attention" TO "review";--> statement-breakpoint
ALTER TABLE `escrow` RENAME COLUMN "found_standing" TO "found_status";--> statement-breakpoint
ALTER TABLE `escrow` RENAME COLUMN "notices" TO "notification_count";--> statement-breakpoint
ALTER TABLE `idempotency_key` RENAME COLUMN "operation_id" TO "instruction_id";--> statement-breakpoint
DROP INDEX `escrow_operation_operation_id_unique`;--> statement-breakpoint
DROP INDEX `escrow_operation_by_order`;--> statement-breakpoint
DROP INDEX `escrow_operation_open`;--> statement-breakpoint
DROP INDEX `escrow_in_need`;--> statement-breakpoint
CREATE UNIQUE INDEX `escrow_instruction_instruction_id_unique` ON `escrow_instruction` (`instruction_id`);--> statement-breakpoint
CREATE INDEX `escrow_instruction_by_order` ON `escrow_instruction` (`order_id`);--> statement-breakpoint
CREATE INDEX `escrow_instruction_open` ON `escrow_instruction` (`order_id`) WHERE "escrow_instruction"."status" IN ('PREPARED', 'SENT', 'UNKNOWN');--> statement-breakpoint
CREATE INDEX `escrow_in_review` ON `escrow` (`id`) WHERE "escrow"."review" IS NOT NULL;
