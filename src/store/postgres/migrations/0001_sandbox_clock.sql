ALTER TABLE deployment ADD clock_ahead_s bigint DEFAULT 0 NOT NULL;

CREATE TRIGGER deployment_clock_goes_forward BEFORE UPDATE OF clock_ahead_s ON deployment
FOR EACH ROW WHEN (NEW.clock_ahead_s < OLD.clock_ahead_s OR OLD.environment <> 'sandbox')
EXECUTE FUNCTION reject('only the clock of a sandbox is advanced, and it never goes back');
ALTER TABLE deployment ENABLE ALWAYS TRIGGER deployment_clock_goes_forward;

-- The time before which records may be deleted: five years ago in UTC, by the clock of the database. In a sandbox,
-- that clock is advanced. RETURN finds the table now: a later one of its name in another schema changes nothing.
CREATE OR REPLACE FUNCTION end_of_retention() RETURNS numeric LANGUAGE sql STABLE
RETURN extract(epoch FROM now() AT TIME ZONE 'UTC'
  + coalesce((SELECT clock_ahead_s FROM deployment), 0) * interval '1 second' - interval '5 years');
