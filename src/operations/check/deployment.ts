import { existsSync } from 'node:fs';
import { type Config, readServingConfig, unknownSettings } from '../../config/config.ts';
import { readKeyRing } from '../../config/master-key.ts';
import { ConfigError } from '../../config/settings.ts';
import { createCalendar, yearOf } from '../../domain/calendar.ts';
import type { Clock } from '../../domain/clock.ts';
import type { KeyRing, MasterKeyId } from '../../keys/key-ring.ts';
import {
  countSeals,
  findUnopened,
  type SealedKey,
  type Seals,
  sealedLogKeys,
  sealedWebhookSecrets,
  sealedWebhookUrl,
} from '../../keys/sealed-secrets.ts';
import { fileErrorText } from '../../lib/file-errors.ts';
import { isDamage } from '../../store/sqlite/failure.ts';
import type { Content, Inspection } from '../../store/sqlite/inspection.ts';
import { databaseFile } from '../../store/sqlite/location.ts';
import { findLostDatabase } from '../registry.ts';
import { readServingRecord, type ServingRecord } from '../serving-record.ts';
import { checkBackups } from './backups.ts';
import { checkLog, checkOrigin } from './evidence-log.ts';
import { type Finding, findingsOf, messageOf } from './finding.ts';
import { checkCertificates, checkPlainListeners } from './listeners.ts';
import { bytesOfMiB, checkAddresses, checkClock, checkDisk, checkFiles } from './machine.ts';
import { checkNumbers } from './numbers.ts';
import { checkRestoration } from './restoration.ts';
import { checkWebhooks } from './webhooks.ts';

/** Timeout of the provider, in milliseconds. */
const answerMs = 8_000;

/** The part whose faults end the check. */
export const settingsPart = 'settings';

/**
 * Checks a deployment part by part, whether a process serves it or not, and changes nothing. If settings are wrong, it
 * reports only these.
 */
export async function* checkDeployment(env: NodeJS.ProcessEnv, clock: Clock): AsyncGenerator<Finding> {
  const settings = findingsOf(settingsPart);
  let config: Config;
  try {
    config = readServingConfig(env);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    yield* error.faults.map((fault) => settings.fault(fault.replace(/\.$/, '')));
    return;
  }
  const { environment, currency, timeZone, provider, dataDir } = config;
  yield settings.ok(`${environment} in ${dataDir}, ${currency}, ${timeZone}, ${provider.name}`);
  for (const variable of unknownSettings(env))
    yield settings.warning(
      `${variable} is not a setting and has no effect: artseal --help lists the settings`,
    );
  yield* checkFiles(config);
  yield checkDisk(dataDir, clock);

  const year = yearOf(createCalendar(timeZone).timestamp(clock.nowMs()));
  const database = await checkDatabase(config, year);
  yield* database.findings;
  if (database.content !== undefined) yield database.content.foundInLog;
  yield* checkRestoration(database.content?.restoration, clock.nowMs());
  if (database.content !== undefined) yield* checkNumbers(database.content.numbers);
  yield await checkClock(clock, database.content);
  const serving = await findServing(dataDir);
  yield serving.finding;
  yield* checkMasterKeys(config, database.content, serving.record, Math.floor(clock.nowMs() / 1000));
  yield* await checkAddresses(config, serving.record);
  yield* checkCertificates(config, clock.nowMs());
  yield* await checkPlainListeners(config);
  yield await checkBackups(config, clock.nowMs());
  yield await checkProvider(config, clock);
  yield await checkWebhooks(config);
}

async function checkDatabase(
  config: Config,
  year: number,
): Promise<{ readonly findings: readonly Finding[]; readonly content?: Content<Finding> | undefined }> {
  const { fault, warning } = findingsOf('database');
  const file = databaseFile(config.dataDir);
  const lost = findLostDatabase(config.dataDir);
  if (lost !== undefined) return { findings: [fault(lost.replace(/\.$/, ''))] };
  try {
    const { inspectDatabase } = await import('../../store/sqlite/inspection.ts');
    const inspection = await inspectDatabase(config.dataDir, year, (...found) => checkLog(config, ...found));
    if (inspection !== undefined)
      return { findings: judge(config, file, inspection), content: inspection.content };
    const none = `there is no database ${file}`;
    return config.environment === 'sandbox' && !existsSync(file)
      ? { findings: [warning(`${none} yet: artseal serve makes it`)] }
      : {
          findings: [
            fault(`${none}: set ARTSEAL_DATA_DIR to the folder of one, or make one by artseal init`),
          ],
        };
  } catch (error) {
    return {
      findings: [
        fault(
          isDamage(error)
            ? damaged(file, [error.message])
            : `${file} cannot be read: ${fileErrorText(error, file) ?? messageOf(error)}`,
        ),
      ],
    };
  }
}

const damaged = (file: string, damages: readonly string[]): string =>
  `${file} is damaged (${damages.join('; ')}): stop, and restore a backup`;

function judge(config: Config, file: string, inspection: Inspection<Finding>): Finding[] {
  const { ok, warning, fault } = findingsOf('database');
  const { bytes, schema, knownSchema, damages, logNames, content } = inspection;
  if (damages.length > 0) return [fault(damaged(file, damages))];
  if (schema > knownSchema)
    return [
      fault(
        `${file} was made by a newer artseal (schema ${schema}; this one knows ${knownSchema}): run that one`,
      ),
    ];
  if (schema < knownSchema)
    return [
      warning(
        `${file} is of schema ${schema}: the next start brings it to ${knownSchema}, after which older versions cannot open it`,
      ),
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

async function findServing(
  dataDir: string,
): Promise<{ readonly finding: Finding; readonly record?: ServingRecord | undefined }> {
  const { ok, warning, unchecked } = findingsOf('serving');
  try {
    const { isServed } = await import('../../store/sqlite/serving-lock.ts');
    if (!isServed(dataDir)) return { finding: ok('no process serves this folder') };
  } catch (error) {
    return { finding: unchecked(`whether a process serves this folder cannot be seen: ${messageOf(error)}`) };
  }
  const record = readServingRecord(dataDir);
  return record === undefined
    ? {
        finding: warning(
          'a process serves this folder that has not published its id: it is starting, or is an older version',
        ),
      }
    : {
        finding: ok(`the process ${record.pid} serves this folder at ${record.addresses.join(' and ')}`),
        record,
      };
}

function* checkMasterKeys(
  { masterKeys }: Config,
  content: Content<Finding> | undefined,
  serving: ServingRecord | undefined,
  nowS: number,
): Generator<Finding> {
  const { ok, warning, fault, unchecked } = findingsOf('master key');
  if ('ownFile' in masterKeys && !existsSync(masterKeys.ownFile) && (content?.keys.length ?? 0) === 0)
    return yield ok(`${masterKeys.ownFile} is made at the first start`);
  let keyRing: KeyRing;
  try {
    keyRing = readKeyRing(masterKeys);
  } catch (error) {
    return yield fault(messageOf(error));
  }
  if (content === undefined)
    return yield unchecked('whether they open the secrets: the database cannot be read');
  const webhookSecrets = content.webhooks.flatMap((one) => [
    ...sealedWebhookSecrets(one),
    ...sealedWebhookUrl(one),
  ]);
  const keys = [...content.keys, ...webhookSecrets, ...sealedLogKeys(content.log)];
  const unopened = countSeals(findUnopened(keys, keyRing, nowS), nowS);
  for (const { masterKey, secrets } of unopened)
    yield fault(
      `${inNumber(secrets)} sealed under a master key ${masterKey} that is missing: put it back. Without it these secrets cannot be used`,
    );
  if (unopened.length === 0) yield ok(uses(keyRing, keys, nowS));
  const isKnown = JSON.stringify(serving?.masterKeys) === JSON.stringify(keyRing.masterKeys);
  if (serving !== undefined && !isKnown)
    yield warning(
      `the serving process has other master keys than these settings: run kill -HUP ${serving.pid}`,
    );
}

/** Says what each master key is needed for. */
function uses(
  { masterKeys: [sealing, ...others] }: KeyRing,
  keys: readonly SealedKey[],
  nowS: number,
): string {
  const seals = countSeals(keys, nowS);
  const use = ({ name }: MasterKeyId) => useOf(seals.find(({ masterKey }) => masterKey === name));
  return [
    `${sealing.name} seals and ${use(sealing)}`,
    ...others.map((key) => `${key.name} ${use(key)}`),
  ].join('; ');
}

function useOf(seals: Seals | undefined): string {
  if (seals === undefined) return 'opens no secret';
  return seals.needed === 0 ? 'opens only secrets of ended keys' : `is needed by ${inNumber(seals.needed)}`;
}

const inNumber = (secrets: number): string => (secrets === 1 ? '1 secret' : `${secrets} secrets`);

async function checkProvider(config: Config, clock: Clock): Promise<Finding> {
  const { ok, fault } = findingsOf('provider');
  const { name, movesMoney, open } = config.provider;
  if (!movesMoney) return ok(`${name}: it moves no money and has no server`);
  const provider = await open(config.providerSettings, { dataDir: config.dataDir, clock });
  const timeout = new AbortController();
  const timer = setTimeout(
    () => timeout.abort(new Error(`no answer within ${answerMs / 1_000} seconds`)),
    answerMs,
  );
  try {
    const access = await provider.checkAccess(timeout.signal);
    if (access.kind === 'ACCEPTED') return ok(`${name} accepts the credentials`);
    return access.kind === 'REJECTED'
      ? fault(`${name} rejects the credentials: ${access.why}; set others that it accepts`)
      : fault(`${name} gives no answer: ${access.why}; check the network and the status page of ${name}`);
  } finally {
    clearTimeout(timer);
    await provider.close();
  }
}
