import { existsSync } from 'node:fs';
import { acceptedFrom, rejectedThroughS } from '../../api/nonce-gap.ts';
import { type Config, settings } from '../../config/config.ts';
import { faultOf } from '../../config/settings.ts';
import { createCalendar, yearOf } from '../../domain/calendar.ts';
import { escrowSequenceMax } from '../../domain/escrow-id.ts';
import { filingSequenceMax } from '../../domain/filing.ts';
import type { Finding } from '../../domain/finding.ts';
import { checkLogName, readAgreed } from '../../evidence/log/agreement.ts';
import { requiredOrigin } from '../../evidence/log/origin.ts';
import { createCheckpointFile } from '../../evidence/log/publication.ts';
import { fileErrorText } from '../../lib/file-errors.ts';
import type { LogNames, LogState } from '../../store/log-commands.ts';
import type { Restoration } from '../../store/operator-commands.ts';
import { isDamage } from '../../store/sqlite/failure.ts';
import type { Content, Inspection, UsedNumbers } from '../../store/sqlite/inspection.ts';
import { databaseFile } from '../../store/sqlite/location.ts';
import type { ReadTree } from '../../store/store.ts';
import { firstOf } from '../backup/manifest.ts';
import { findLostDatabase } from '../registry.ts';
import { findingsOf, messageOf } from './finding.ts';
import { bytesOfMiB } from './machine.ts';

/** Checks the database, its evidence log, whether it was restored, and the numbers that are left. Returns what it holds. */
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

function findingsIn(content: Content<Finding> | undefined, nowMs: number): Finding[] {
  if (content === undefined) return [];
  return [
    content.foundInLog,
    ...checkRestoration(content.restoration, nowMs),
    ...checkNumbers(content.numbers),
  ];
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
  const { environment, currency, provider } = content;
  const findings: Finding[] = [];
  if (environment !== config.environment)
    findings.push(fault(`${file} belongs to a ${environment}: set ARTSEAL_ENVIRONMENT to match`));
  if (currency !== config.currency)
    findings.push(fault(`${file} is in ${currency}: set ARTSEAL_CURRENCY to match`));
  if (provider !== null && provider !== config.provider.name)
    findings.push(
      warning(
        `the money of its orders is at ${provider}: serve refuses to start with ${config.provider.name} ` +
          'as long as orders are open there',
      ),
    );
  if (findings.length > 0) return findings;
  const size = Math.ceil(bytes / bytesOfMiB);
  return [
    ok(
      `${file}: ${environment} in ${currency}, schema ${schema}, ${size} MiB, and quick_check finds no damage`,
    ),
  ];
}

/**
 * Checks that the published checkpoint and the database agree, as the start and each signing do. `faults` names the records
 * that differ from the log.
 */
async function checkLog(
  config: Config,
  state: LogState,
  read: ReadTree,
  faults: readonly string[],
): Promise<Finding> {
  const published = await checkPublished(config, state, read);
  if (faults.length === 0) return published;
  const text = `${firstOf(faults)}: see docs/operate/incidents/record-changed.md`;
  return findingsOf('evidence log').fault(
    published.level === 'fault' ? `${published.text}. Besides: ${text}` : text,
  );
}

/** Returns a fault if a production has no name of its log in the settings. */
function checkOrigin({ environment, logOrigin }: Config, names: LogNames): Finding[] {
  if (environment !== 'production' || logOrigin !== undefined) return [];
  const text = faultOf(settings.logOrigin, requiredOrigin(names)).replace(/\.$/, '');
  return [findingsOf('evidence log').fault(text)];
}

async function checkPublished(config: Config, state: LogState, read: ReadTree): Promise<Finding> {
  const { dataDir, logOrigin } = config;
  const { ok, fault } = findingsOf('evidence log');
  try {
    const [missing] = checkOrigin(config, state);
    if (missing !== undefined) return missing;
    checkLogName(state, logOrigin);
    const file = createCheckpointFile(dataDir);
    const published = await readAgreed({ execute: read, state, file, last: undefined });
    const { origin: name } = state;
    if (name === undefined) return ok('it gets its name and its key at the next start');
    if (published === undefined) return ok(`${name} has its first checkpoint after the next start`);
    const { size } = await read({ kind: 'GetTree' });
    return ok(`${name}: of ${size} leaves ${published.size} are published, as ${file.path} has it`);
  } catch (error) {
    return fault(messageOf(error));
  }
}

/** The share of used numbers from which there is a warning. */
const warnedShare = 0.8;

/** Checks whether the numbers of the year run out, of the registry or of a platform with a cap on filings. */
function checkNumbers({ filingNumbers, escrowNumbers, caps }: UsedNumbers): Finding[] {
  const { ok, warning } = findingsOf('numbers');
  const uses = [
    usedOf(filingNumbers, filingSequenceMax, 'filing numbers'),
    usedOf(escrowNumbers, escrowSequenceMax, 'escrow ids'),
    ...caps.map(({ platform, filings, cap }) => ({
      ...{ used: filings, of: cap },
      text: `${platform} has made ${filings} filings this year; its cap is ${cap}: artseal platform set --filing-cap changes it`,
    })),
  ];
  const near = uses.filter(({ used, of }) => used >= warnedShare * of);
  if (near.length > 0) return near.map(({ text }) => warning(text));
  return [ok(usedOf(filingNumbers, filingSequenceMax, 'filing numbers').text)];
}

const usedOf = (used: number, of: number, what: string) => ({
  ...{ used, of },
  text: `${used} of ${of} ${what} of this year are used`,
});

/** Checks whether signed calls are rejected since a restore; returns nothing if the database was never restored. */
function checkRestoration(restoration: Restoration | undefined, nowMs: number): Finding[] {
  const { ok, warning, fault } = findingsOf('restored');
  if (restoration === undefined) return [];
  if (restoration.servedAtS === undefined)
    return [
      warning(
        'it was restored from a backup and not served since: signed calls are rejected for five minutes after the first ' +
          'start; serve no other folder that was restored',
      ),
    ];
  const untilS = rejectedThroughS(restoration.servedAtS);
  const finding =
    Math.floor(nowMs / 1_000) > untilS
      ? ok('it was restored from a backup, and signed calls are accepted again')
      : fault(
          `signed calls are rejected until ${acceptedFrom(untilS)}, since it was restored from a backup: wait`,
        );
  return [finding];
}
