import { existsSync } from 'node:fs';
import type { Config } from '../../config/config.ts';
import { createCalendar, yearOf } from '../../domain/calendar.ts';
import type { Finding } from '../../domain/finding.ts';
import { fileErrorText } from '../../lib/file-errors.ts';
import type { Content } from '../../store/handlers/content.ts';
import type { Inspection } from '../../store/sqlite/inspection.ts';
import { databaseFile } from '../../store/sqlite/location.ts';
import { isDamage } from '../../store/sqlite/sqlite-errors.ts';
import { findLostDatabase } from '../registry.ts';
import { checkBinding, checkLog, checkOrigin, findingsIn } from './content.ts';
import { findingsOf, messageOf } from './finding.ts';
import { bytesOfMiB } from './machine.ts';

/** Checks the database on SQLite, its evidence log, whether it was restored, and the numbers that are left. Returns what it holds. */
export async function checkDatabase(
  config: Config,
  nowMs: number,
): Promise<{ readonly findings: readonly Finding[]; readonly content?: Content<Finding> | undefined }> {
  const { fault, warning } = findingsOf('database');
  const file = databaseFile(config.dataDir);
  const lost = findLostDatabase(config.dataDir);
  if (lost !== undefined) return { findings: [fault(lost.replace(/\.$/, ''))] };
  try {
    const { inspectDatabase } = await import('../../store/sqlite/inspection.ts');
    const year = yearOf(createCalendar(config.timeZone).timestamp(nowMs));
    const inspection = await inspectDatabase(config.dataDir, year, (...found) => checkLog(config, ...found));
    if (inspection !== undefined) {
      const { content } = inspection;
      return { findings: [...judge(config, file, inspection), ...findingsIn(content, nowMs)], content };
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

function judge(config: Config, file: string, inspection: Inspection<Finding>): Finding[] {
  const { ok, warning, fault } = findingsOf('database');
  const { bytes, schema, knownSchema, tooNew, damages, logNames, content } = inspection;
  if (damages.length > 0) return [fault(damaged(file, damages))];
  if (tooNew !== undefined) return [fault(tooNew)];
  if (schema < knownSchema)
    return [
      warning(`${file} has schema ${schema}: the next start upgrades it to ${knownSchema}`),
      ...checkOrigin(config, logNames),
    ];
  if (content === undefined) return [fault(`${file} is bound to no deployment: restore a backup`)];
  const faults = checkBinding(config, file, content);
  if (faults.length > 0) return faults;
  const { environment, currency } = content;
  const size = Math.ceil(bytes / bytesOfMiB);
  return [
    ok(
      `${file}: ${environment} in ${currency}, schema ${schema}, ${size} MiB, and quick_check finds no damage`,
    ),
  ];
}
