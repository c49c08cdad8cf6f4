import type { Config } from '../../config/config.ts';
import { createCalendar, yearOf } from '../../domain/calendar.ts';
import type { Finding } from '../../domain/finding.ts';
import type { Inspection } from '../../store/postgres/inspection.ts';
import type { Content } from '../../store/sqlite/inspection.ts';
import type { PostgresPlace } from '../../store/store.ts';
import { checkBinding, checkLog, checkOrigin, findingsIn } from './content.ts';
import { findingsOf, messageOf } from './finding.ts';

/** The age of a snapshot from which there is a warning, in seconds. */
const oldSnapshotS = 600;

/** Checks a database on PostgreSQL, as `checkDatabase` checks one on SQLite. */
export async function checkPostgres(
  config: Config,
  place: PostgresPlace,
  nowMs: number,
): Promise<{ readonly findings: readonly Finding[]; readonly content?: Content<Finding> | undefined }> {
  try {
    const { inspectDatabase } = await import('../../store/postgres/inspection.ts');
    const year = yearOf(createCalendar(config.timeZone).timestamp(nowMs));
    const inspection = await inspectDatabase(place, year, (...found) => checkLog(config, ...found));
    const { content } = inspection;
    const findings = [...judge(config, place.url, inspection), ...checkServer(inspection)];
    return { findings: [...findings, ...findingsIn(content, nowMs)], content };
  } catch (error) {
    return { findings: [findingsOf('database').fault(messageOf(error))] };
  }
}

/** Checks the tables, and whether they belong to this deployment. */
function judge(config: Config, url: string, inspection: Inspection<Finding>): Finding[] {
  const { ok, warning, fault } = findingsOf('database');
  const { version, schema, knownSchema, tooNew, logNames, content } = inspection;
  if (tooNew !== undefined) return [fault(tooNew)];
  if (schema === 0) {
    const none = `${url} has no tables of Artseal`;
    return [
      config.environment === 'sandbox'
        ? warning(`${none} yet: artseal serve makes them`)
        : fault(
            `${none}: set ARTSEAL_DATABASE_URL to a database that has them, or make them by artseal init`,
          ),
    ];
  }
  if (schema < knownSchema)
    return [
      warning(`${url} has schema ${schema}: stop the server, and run artseal upgrade for ${knownSchema}`),
      ...checkOrigin(config, logNames),
    ];
  if (content === undefined) return [fault(`${url} is bound to no deployment: restore a backup`)];
  const faults = checkBinding(config, url, content);
  if (faults.length > 0) return faults;
  const { environment, currency } = content;
  return [ok(`${url}: ${environment} in ${currency}, schema ${schema}, PostgreSQL ${version}`)];
}

/** Checks the settings of the server, and whether a transaction keeps old rows. */
function checkServer({ unsafe, snapshotS }: Inspection<Finding>): Finding[] {
  const { warning, fault } = findingsOf('database');
  const findings = unsafe === undefined ? [] : [fault(unsafe.replace(/\.$/, ''))];
  if (snapshotS <= oldSnapshotS) return findings;
  const text =
    `a transaction has been open for ${Math.floor(snapshotS / 60)} minutes, and no row that was deleted ` +
    'since can be removed: find it in pg_stat_activity or pg_prepared_xacts, and end it';
  return [...findings, warning(text)];
}
