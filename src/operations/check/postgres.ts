import type { Config } from '../../config/config.ts';
import { createCalendar, yearOf } from '../../domain/calendar.ts';
import type { Clock } from '../../domain/clock.ts';
import type { Finding } from '../../domain/finding.ts';
import type { Content } from '../../store/handlers/content.ts';
import type { Inspection } from '../../store/postgres/inspection.ts';
import type { PostgresPlace } from '../../store/store.ts';
import { checkBinding, checkLog, checkOrigin, findingsIn } from './content.ts';
import { findingsOf, messageOf } from './finding.ts';
import { bytesOfMiB } from './machine.ts';

/** The age of a snapshot from which there is a warning, in seconds. */
const oldSnapshotS = 600;

/** The difference between the clocks from which there is a warning, in milliseconds. */
const clockDifferenceMs = 2_000;

/** Checks a database on PostgreSQL, as `checkDatabase` checks one on SQLite. */
export async function checkPostgres(
  config: Config,
  place: PostgresPlace,
  { nowMs }: Pick<Clock, 'nowMs'>,
): Promise<{ readonly findings: readonly Finding[]; readonly content?: Content<Finding> | undefined }> {
  try {
    const { inspectDatabase } = await import('../../store/postgres/inspection.ts');
    const year = yearOf(createCalendar(config.timeZone).timestamp(nowMs()));
    const inspection = await inspectDatabase(place, { year, nowMs }, (...found) =>
      checkLog(config, ...found),
    );
    const { content } = inspection;
    const findings = [...judge(config, place.url, inspection), ...checkServer(config, inspection)];
    return { findings: [...findings, ...findingsIn(content, nowMs())], content };
  } catch (error) {
    return { findings: [findingsOf('database').fault(messageOf(error))] };
  }
}

/** Checks the tables, and whether they belong to this deployment. */
function judge(config: Config, url: string, inspection: Inspection<Finding>): Finding[] {
  const { ok, warning, fault } = findingsOf('database');
  const { version, role, bytes, hasSynchronousStandby } = inspection;
  const { schema, knownSchema, tooNew, logNames, content } = inspection;
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
  const standby = hasSynchronousStandby ? 'commits wait for a standby' : 'without a synchronous standby';
  return [
    ok(
      `${url}: ${environment} in ${currency}, schema ${schema}, PostgreSQL ${version}, role ${role}, ` +
        `${Math.ceil(bytes / bytesOfMiB)} MiB, ${standby}`,
    ),
  ];
}

/** Checks the settings of the server, the role, the clock, and what keeps old rows. */
function checkServer({ environment }: Config, inspection: Inspection<Finding>): Finding[] {
  const { unsafe, role, isOwner, snapshotS, unusedSlots, aheadMs } = inspection;
  const { warning, fault, unchecked } = findingsOf('database');
  const findings = unsafe === undefined ? [] : [fault(unsafe.replace(/\.$/, ''))];
  if (environment === 'production' && isOwner)
    findings.push(
      warning(
        `the role ${role} may change the tables that keep the evidence: serve with another one, as artseal database roles grants it`,
      ),
    );
  if (snapshotS === undefined)
    findings.push(
      unchecked(`the transactions of other roles are not visible: GRANT pg_read_all_stats TO "${role}"`),
    );
  else if (snapshotS > oldSnapshotS)
    findings.push(
      warning(
        `a transaction has been open for ${Math.floor(snapshotS / 60)} minutes, and no row that was deleted ` +
          'since can be removed: find it in pg_stat_activity or pg_prepared_xacts, and end it',
      ),
    );
  for (const slot of unusedSlots)
    findings.push(
      warning(
        `nobody uses the replication slot ${slot}, which keeps the write-ahead log until the disk is full: ` +
          'start its standby, or drop the slot with pg_drop_replication_slot',
      ),
    );
  if (Math.abs(aheadMs) > clockDifferenceMs) {
    const seconds = Math.round(Math.abs(aheadMs) / 1_000);
    const which = aheadMs > 0 ? 'ahead of' : 'behind';
    findings.push(
      warning(`the clock of PostgreSQL is ${seconds} s ${which} that of this machine: have NTP keep both`),
    );
  }
  return findings;
}
