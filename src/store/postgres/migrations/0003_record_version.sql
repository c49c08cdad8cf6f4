ALTER TABLE evidence_link ADD disclose text COLLATE "C";
ALTER TABLE filing ADD record_version bigint DEFAULT 1 NOT NULL;
ALTER TABLE filing ADD attachments text COLLATE "C";

CREATE OR REPLACE TRIGGER filing_never_changes BEFORE UPDATE ON filing
FOR EACH ROW WHEN (
  NEW.id <> OLD.id OR NEW.filing_no <> OLD.filing_no OR NEW.caller_id <> OLD.caller_id
  OR NEW.timestamp <> OLD.timestamp OR NEW.filed_at_s <> OLD.filed_at_s
  OR NEW.previous_id IS DISTINCT FROM OLD.previous_id OR NEW.leaf_index <> OLD.leaf_index
  OR NEW.record_version <> OLD.record_version
  -- Only erasing it is left, as a whole and once.
  OR NEW.erased_at_s IS NULL OR OLD.erased_at_s IS NOT NULL OR OLD.filed_at_s > end_of_retention()
  OR NEW.salt IS NOT NULL OR NEW.attachments IS NOT NULL OR NEW.price <> 0 OR NEW.hash <> ''
  OR NEW.author || NEW.era || NEW.size || NEW.material || NEW.condition <> ''
)
EXECUTE FUNCTION reject('a filing never changes');
ALTER TABLE filing ENABLE ALWAYS TRIGGER filing_never_changes;

-- Earlier versions cannot check records of version 2.
UPDATE oldest_version SET schema = 4, version = '1.0.0-rc.2';
