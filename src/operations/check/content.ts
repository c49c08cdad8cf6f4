import { acceptedFrom, rejectedThroughS } from '../../api/authentication.ts';
import { type Config, settings } from '../../config/config.ts';
import { faultOf } from '../../config/settings.ts';
import { escrowSequenceMax } from '../../domain/escrow-id.ts';
import { filingSequenceMax } from '../../domain/filing.ts';
import type { Finding } from '../../domain/finding.ts';
import { checkLogName, readAgreed } from '../../evidence/log/agreement.ts';
import { createCheckpointFile, requiredOrigin } from '../../evidence/log/publication.ts';
import type { Content, UsedNumbers } from '../../store/handlers/content.ts';
import type { LogNames, LogState } from '../../store/log-commands.ts';
import type { Restoration } from '../../store/operator-commands.ts';
import type { ReadTree } from '../../store/store.ts';
import { firstOf } from '../backup/manifest.ts';
import { findingsOf, messageOf } from './finding.ts';

/** The findings about the content of a database: its evidence log, a restoration, and the numbers that are left. */
export function findingsIn(content: Content<Finding> | undefined, nowMs: number): Finding[] {
  if (content === undefined) return [];
  return [
    content.foundInLog,
    ...checkRestoration(content.restoration, nowMs),
    ...checkNumbers(content.numbers),
  ];
}

/** Checks that a database belongs to the deployment of the settings. Returns nothing if it does. */
export function checkBinding(
  config: Config,
  database: string,
  { environment, currency, provider }: Pick<Content<Finding>, 'environment' | 'currency' | 'provider'>,
): Finding[] {
  const { warning, fault } = findingsOf('database');
  const findings: Finding[] = [];
  if (environment !== config.environment)
    findings.push(fault(`${database} belongs to a ${environment}: set ARTSEAL_ENVIRONMENT to match`));
  if (currency !== config.currency)
    findings.push(fault(`${database} is in ${currency}: set ARTSEAL_CURRENCY to match`));
  if (provider !== null && provider !== config.provider.name)
    findings.push(
      warning(
        `the money of its orders is at ${provider}: serve refuses to start with ${config.provider.name} ` +
          'as long as orders are open there',
      ),
    );
  return findings;
}

/**
 * Checks that the published checkpoint and the database agree, as the start and each signing do. `faults` names the records
 * that differ from the log.
 */
export async function checkLog(
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
export function checkOrigin({ environment, logOrigin }: Config, names: LogNames): Finding[] {
  if (environment !== 'production' || logOrigin !== undefined) return [];
  const text = faultOf(settings.logOrigin, requiredOrigin(names)).replace(/\.$/, '');
  return [findingsOf('evidence log').fault(text)];
}

async function checkPublished(config: Config, state: LogState, read: ReadTree): Promise<Finding> {
  const { dataDir, database, logOrigin } = config;
  const { ok, fault } = findingsOf('evidence log');
  try {
    const [missing] = checkOrigin(config, state);
    if (missing !== undefined) return missing;
    checkLogName(state, logOrigin);
    const file = createCheckpointFile(dataDir);
    const isShared = database !== undefined;
    const published = await readAgreed({ execute: read, state, file, last: undefined, isShared });
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
  const { servedAtS } = restoration;
  if (servedAtS === undefined)
    return [
      warning(
        'it was restored from a backup and not served since: signed calls are rejected for five minutes after the first ' +
          'start; serve no other folder that was restored',
      ),
    ];
  const untilS = rejectedThroughS(servedAtS);
  if (Math.floor(nowMs / 1_000) > untilS)
    return [ok('it was restored from a backup, and signed calls are accepted again')];
  const since = 'since it was restored from a backup: wait';
  return [fault(`signed calls are rejected until ${acceptedFrom(untilS)}, ${since}`)];
}
