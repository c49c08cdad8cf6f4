import { existsSync } from 'node:fs';
import type { Config } from '../../config/config.ts';
import { createCalendar, yearOf } from '../../domain/calendar.ts';
import type { Clock } from '../../domain/clock.ts';
import { clocksApartText } from '../../domain/filing-clock.ts';
import type { Finding } from '../../domain/finding.ts';
import { fileErrorText } from '../../lib/file-errors.ts';
import type { Content } from '../../store/handlers/content.ts';
import type { Inspection as PostgresInspection } from '../../store/postgres/inspection.ts';
import type { Inspection } from '../../store/sqlite/inspection.ts';
import { databaseFile } from '../../store/sqlite/location.ts';
import { isDamage } from '../../store/sqlite/sqlite-errors.ts';
import type { PostgresPlace } from '../../store/store.ts';
import { findLostDatabase } from '../registry.ts';
import { checkBinding, checkLog, checkOrigin, findingsIn } from './content.ts';
import { findingsOf, messageOf } from './finding.ts';
import { bytesOfMiB } from './machine.ts';

/** The age of a snapshot on PostgreSQL from which there is a warning, in seconds. */
const oldSnapshotS = 600;

/** The findings about a database, and what it holds. */
interface Checked {
  readonly findings: readonly Finding[];
  readonly content?: Content<Finding> | undefined;
}

/** Checks the database, its evidence log, whether it was restored, and the numbers that are left. */
export async function checkDatabase(config: Config, clock: Pick<Clock, 'nowMs'>): Promise<Checked> {
  const year = yearOf(createCalendar(config.timeZone).timestamp(clock.nowMs()));
  const { findings, content } = await (config.database === undefined
    ? checkFile(config, year)
    : checkPlace(config, config.database, year, clock));
  return { findings: [...findings, ...findingsIn(content, clock.nowMs())], content };
}

async function checkFile(config: Config, year: number): Promise<Checked> {
  const { warning, fault } = findingsOf('database');
  const file = databaseFile(config.dataDir);
  const lost = findLostDatabase(config.dataDir);
  if (lost !== undefined) return { findings: [fault(lost.replace(/\.$/, ''))] };
  try {
    const { inspectDatabase } = await import('../../store/sqlite/inspection.ts');
    const inspection = await inspectDatabase(config.dataDir, year, (...found) => checkLog(config, ...found));
    if (inspection !== undefined) {
      const { damages, bytes, content } = inspection;
      if (damages.length > 0) return { findings: [fault(damaged(file, damages))] };
      const facts = `${Math.ceil(bytes / bytesOfMiB)} MiB, and quick_check finds no damage`;
      return { findings: judge(config, file, inspection, 'the next start upgrades it to', facts), content };
    }
    const none = `there is no database ${file}`;
    const isExpected = config.environment === 'sandbox' && !existsSync(file);
    const finding = isExpected
      ? warning(`${none} yet: artseal serve makes it`)
      : fault(`${none}: set ARTSEAL_DATA_DIR to the folder of one, or make one by artseal init`);
    return { findings: [finding] };
  } catch (error) {
    const text = isDamage(error)
      ? damaged(file, [error.message])
      : `${file} cannot be read: ${fileErrorText(error, file) ?? messageOf(error)}`;
    return { findings: [fault(text)] };
  }
}

const damaged = (file: string, damages: readonly string[]): string =>
  `${file} is damaged (${damages.join('; ')}): stop, and restore a backup`;

async function checkPlace(
  config: Config,
  place: PostgresPlace,
  year: number,
  { nowMs }: Pick<Clock, 'nowMs'>,
): Promise<Checked> {
  const { warning, fault } = findingsOf('database');
  try {
    const { inspectDatabase } = await import('../../store/postgres/inspection.ts');
    const inspection = await inspectDatabase(place, { year, nowMs }, (...found) =>
      checkLog(config, ...found),
    );
    const { schema, version, role, bytes, hasSynchronousStandby, content } = inspection;
    const ofServer = checkServer(config, inspection);
    if (schema === 0) {
      const none = `${place.url} has no tables of Artseal`;
      const finding =
        config.environment === 'sandbox'
          ? warning(`${none} yet: artseal serve makes them`)
          : fault(
              `${none}: set ARTSEAL_DATABASE_URL to a database that has them, or make them by artseal init`,
            );
      return { findings: [finding, ...ofServer] };
    }
    const standby = hasSynchronousStandby ? 'commits wait for a standby' : 'without a synchronous standby';
    const size = Math.ceil(bytes / bytesOfMiB);
    const facts = `PostgreSQL ${version}, role ${role}, ${size} MiB, ${standby}`;
    const upgrade = 'stop the server, and run artseal upgrade for';
    const judged = judge(config, place.url, inspection, upgrade, facts);
    return { findings: [...judged, ...ofServer], content };
  } catch (error) {
    return { findings: [fault(messageOf(error))] };
  }
}

/** Checks the tables, and whether they belong to this deployment. `upgrade` says how they get a later schema. */
function judge(
  config: Config,
  named: string,
  inspection: Pick<Inspection<Finding>, 'schema' | 'knownSchema' | 'tooNew' | 'logNames' | 'content'>,
  upgrade: string,
  facts: string,
): Finding[] {
  const { ok, warning, fault } = findingsOf('database');
  const { schema, knownSchema, tooNew, logNames, content } = inspection;
  if (tooNew !== undefined) return [fault(tooNew)];
  if (schema < knownSchema)
    return [
      warning(`${named} has schema ${schema}: ${upgrade} ${knownSchema}`),
      ...checkOrigin(config, logNames),
    ];
  if (content === undefined) return [fault(`${named} is bound to no deployment: restore a backup`)];
  const faults = checkBinding(config, named, content);
  const { environment, currency } = content;
  return faults.length > 0
    ? faults
    : [ok(`${named}: ${environment} in ${currency}, schema ${schema}, ${facts}`)];
}

/** Checks the settings of PostgreSQL, the role, the clock, and what keeps old rows. */
function checkServer({ environment }: Config, inspection: PostgresInspection<Finding>): Finding[] {
  const { unsafe, role, isOwner, snapshotS, unusedSlots, aheadMs } = inspection;
  const { warning, fault, unchecked } = findingsOf('database');
  const findings = unsafe === undefined ? [] : [fault(unsafe.replace(/\.$/, ''))];
  const warn = (text: string) => findings.push(warning(text));
  if (environment === 'production' && isOwner)
    warn(
      `the role ${role} may change the tables that keep the evidence: serve with another one, as artseal database roles grants it`,
    );
  if (snapshotS === undefined)
    findings.push(
      unchecked(`the transactions of other roles are not visible: GRANT pg_read_all_stats TO "${role}"`),
    );
  else if (snapshotS > oldSnapshotS)
    warn(
      `a transaction has been open for ${Math.floor(snapshotS / 60)} minutes, and no row that was deleted ` +
        'since can be removed: find it in pg_stat_activity or pg_prepared_xacts, and end it',
    );
  for (const slot of unusedSlots)
    warn(
      `nobody uses the replication slot ${slot}, which keeps the write-ahead log until the disk is full: ` +
        'start its standby, or drop the slot with pg_drop_replication_slot',
    );
  const apart = clocksApartText(aheadMs);
  if (apart !== undefined) warn(apart);
  return findings;
}
