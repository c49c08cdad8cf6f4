import { type Handlers, writesLast } from '../engine/handlers.ts';
import type { MergedRate } from '../instance-commands.ts';
import type { Queries } from './leaf-rows.ts';

/** Creates the handler that adds up what all instances allow. */
export function createRateHandler(queries: Queries): Handlers<'MergeRates'> {
  return {
    MergeRates: writesLast(async ({ periodMs, used }) => {
      const values = [used.map(({ callerId }) => callerId), used.map(({ usedMs }) => usedMs), periodMs];
      const { rows } = await queries.query<MergedRate>({ ...mergeRates, values });
      return rows;
    }),
  };
}

/** If the clock of the database was set back, the stored arrivals delay a caller by so many seconds at most. */
const aheadMaxS = 10;

/** As for usage, a search ends at the newest row. Under the fence, no other transaction replaces that row. */
const mergeRates = {
  name: 'merge rates',
  text: `WITH given AS (
      SELECT used.caller_id, used.ms * interval '1 ms' AS used, newest.arrives_at,
        statement_timestamp() - $3::float8 * interval '1 ms' AS start
      FROM unnest($1::bigint[], $2::float8[]) AS used (caller_id, ms) LEFT JOIN LATERAL (
        SELECT arrives_at FROM rate WHERE rate.caller_id = used.caller_id ORDER BY arrives_at DESC LIMIT 1
      ) AS newest ON true
    ), gone AS (
      DELETE FROM rate USING given WHERE rate.caller_id = given.caller_id AND rate.arrives_at = given.arrives_at
    ), merged AS (
      SELECT caller_id, start,
        least(greatest(arrives_at, start), start + interval '${aheadMaxS} s') + used AS arrives_at FROM given
    ), stored AS (
      INSERT INTO rate (caller_id, arrives_at) SELECT caller_id, arrives_at FROM merged
    )
    SELECT caller_id AS "callerId", extract(epoch FROM arrives_at - start) * 1000 AS "arrivalMs" FROM merged`,
};
