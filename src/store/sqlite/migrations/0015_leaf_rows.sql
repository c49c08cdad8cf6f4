-- The triggers are added by hand. Rows of before have one leaf each, and stay as they are.
ALTER TABLE `log_leaf` ADD `first` integer;
--> statement-breakpoint
DROP TRIGGER `log_leaf_never_replaced`;
--> statement-breakpoint
CREATE TRIGGER `log_leaf_follows` BEFORE INSERT ON `log_leaf`
WHEN NEW.`first` IS NULL OR NEW.`first` > NEW.`id`
  OR NEW.`first` <> (SELECT coalesce(max(`id`) + 1, 0) FROM `log_leaf`)
BEGIN SELECT RAISE(ABORT, 'a leaf of the log follows the last one'); END;
