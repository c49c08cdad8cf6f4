import { join } from 'node:path';
import { madeUpOriginStart } from '../domain/leaf.ts';
import { addressText, urlOf } from '../http/listen/address.ts';
import { readTlsFiles, TlsFileError, type TlsFiles } from '../http/listen/tls-files.ts';
import type { MasterKey } from '../keys/key-ring.ts';
import { isLoopback, loopback } from '../lib/networks.ts';
import type { Setting } from '../payments/provider.ts';
import type { PostgresPlace } from '../store/store.ts';
import { faultOf, readAll, readFrom, refuse, type Source, textOf } from './settings.ts';
import { allSettings, settings } from './table.ts';

export { allSettings, clientVariables, type LogFormat, settings, unknownSettings } from './table.ts';

/** The checked settings of a deployment. `configReaders` documents the members. */
export type Config = {
  readonly [Member in keyof ReturnType<typeof configReaders>]: ReturnType<
    ReturnType<typeof configReaders>[Member]
  >;
};

/** How webhook endpoints are reached. */
export type WebhookSettings = Config['webhooks'];

/** The backups that are taken regularly. */
export type RegularBackups = Config['backups'];

/** The master keys, or the file in the data folder where a sandbox keeps its own. */
export type MasterKeySource = { readonly keys: readonly MasterKey[] } | { readonly ownFile: string };

/** The file of a sandbox's own master key in its data folder. */
export const ownMasterKeyName = 'master-key';

/**
 * A reader for each member of the configuration. A member that depends on another one reads that as well; a fault is
 * reported once. A file is read once, since it may be a pipe.
 */
function configReaders(env: NodeJS.ProcessEnv) {
  const source: Source = readFrom(env, () => source.read(settings.environment));
  const { read, find } = source;
  return {
    environment: () => read(settings.environment),
    publicAddress: () => read(settings.publicAddress),
    /** Undefined for plain HTTP. */
    publicTls: () => readTls(source, publicTlsSettings),
    /** The address at which others reach the public API, without a slash at its end; undefined if a production does not know it. */
    publicUrl: () => readOutsideUrl(env, source),
    internalAddress: () => read(settings.internalAddress),
    internalTls: () => readInternalTls(source),
    /** Proxies whose X-Forwarded-For is trusted. */
    trustedProxies: () => read(settings.trustedProxies),
    /** Undefined for no metrics listener. */
    metricsAddress: () => read(settings.metricsAddress),
    dataDir: () => read(settings.dataDir),
    /** Undefined for SQLite in the data folder. */
    database: () => readDatabase(source),
    /** IANA name. */
    timeZone: () => read(settings.timeZone),
    /** ISO 4217 code. */
    currency: () => readCurrency(source),
    masterKeys: () => readMasterKeys(source),
    logLevel: () => read(settings.logLevel),
    logFormat: () => read(settings.logFormat),
    /** How long the server still serves after SIGTERM while it reports that it is not ready, in seconds. */
    drainDelayS: () => read(settings.drainDelay),
    buyerDeadlineMs: () => read(settings.buyerDeadline),
    backups: () =>
      readAll({
        /** Undefined if the server takes none. */
        folder: () => readBackupDir(source),
        /** Also set if something else than the server takes them. */
        everyMs: () => read(settings.backupEvery),
        keep: () => read(settings.backupKeep),
      }),
    /** Name of the evidence log; undefined for the one that a sandbox derives from its secret. */
    logOrigin: () => find(settings.logOrigin),
    /** Undefined for no witnesses. */
    logWitnesses: () => readLogWitnesses(source),
    /** The time-stamping authority; undefined for none. */
    logTimeStamps: () => readLogTimeStamps(source),
    webhooks: () => readWebhooks(source),
    /** Whether people can pre-register with a form. */
    hasAccessForm: () => read(settings.accessForm),
    /** The mail server; undefined if there is none. */
    mail: () => readMail(env, source),
    provider: () => read(settings.provider),
    /** As the `open` of the provider takes them. */
    providerSettings: () => readProviderSettings(source),
    /** The environment that the settings were read from, for child processes. */
    variables: () => env,
    /** The files that settings name, those of providers that are not chosen among them. */
    namedFiles: () => filesOf(env, source, () => true),
    /** Those of them that everybody may read. */
    publicFiles: () => filesOf(env, source, ({ isPublic }) => isPublic === true),
  };
}

/** Reads the settings. Throws ConfigError with all faults. */
export function readConfig(env: NodeJS.ProcessEnv): Config {
  return readAll<Config>(configReaders(env));
}

/** Reads the settings of a server, which has further rules. Throws ConfigError with all faults. */
export function readServingConfig(env: NodeJS.ProcessEnv): Config {
  return readAll<Config>(configReaders(env), faultsForServing);
}

/**
 * Returns a sentence for each fault of settings that only matters to a server. Commands work with such settings: for
 * example, they create the keys of a production that has no provider yet. `config` has the members that could be read.
 */
export function faultsForServing(config: Partial<Config>): readonly string[] {
  const { environment, logOrigin, provider, publicTls, internalTls } = config;
  const faults = [
    ...faultsOfTls(publicTls, publicTlsSettings),
    ...faultsOfTls(internalTls, internalTlsSettings),
  ];
  if (environment === 'production' && provider?.movesMoney === false) {
    const rule = `must name a real provider in production, and ${provider.name} is none`;
    faults.push(faultOf(settings.provider, rule));
  }
  if (environment === 'production' && logOrigin?.startsWith(madeUpOriginStart)) {
    const rule = `must not begin with ${madeUpOriginStart} in production: auditors let the records of such a log expire early`;
    faults.push(faultOf(settings.logOrigin, rule));
  }
  return faults;
}

/** The settings that name the TLS files of a listener. */
interface TlsSettings {
  readonly certificate: Setting<string>;
  readonly key: Setting<string>;
  readonly clientCa?: Setting<string>;
}

const publicTlsSettings: TlsSettings = { certificate: settings.publicTlsCert, key: settings.publicTlsKey };
const internalTlsSettings: TlsSettings = {
  certificate: settings.internalTlsCert,
  key: settings.internalTlsKey,
  clientCa: settings.internalTlsClientCa,
};

function faultsOfTls(files: TlsFiles | undefined, settingOf: TlsSettings): readonly string[] {
  try {
    if (files !== undefined) readTlsFiles(files);
    return [];
  } catch (error) {
    if (!(error instanceof TlsFileError)) throw error;
    return [faultOf(settingOf[error.file] ?? settingOf.certificate, error.message)];
  }
}

/** Returns the URL of the public API as it is set, with http or https. Throws ConfigError. */
export function readPublicUrl(env: NodeJS.ProcessEnv): string {
  const { publicAddress, publicTls } = configReaders(env);
  publicAddress();
  return urlOf(textOf(env, settings.publicAddress), publicTls() !== undefined);
}

/** Reads the address at which others reach the public API. A sandbox is reached where it listens. */
function readOutsideUrl(env: NodeJS.ProcessEnv, { read, find }: Source): string | undefined {
  const url = find(settings.publicUrl);
  if (url !== undefined) return url.replace(/\/$/, '');
  return read(settings.environment) === 'sandbox' ? readPublicUrl(env) : undefined;
}

/** The URL of the internal API on this machine by the settings: that of a Unix socket is `unix:/path`. Throws ConfigError. */
export function readInternalUrl(env: NodeJS.ProcessEnv): string {
  const { internalAddress, internalTls } = configReaders(env);
  const address = internalAddress();
  if ('path' in address) return addressText(address);
  const loopback = new Map([
    ['0.0.0.0', '127.0.0.1'],
    ['::', '::1'],
  ]);
  const host = loopback.get(address.host) ?? address.host;
  return urlOf(addressText({ ...address, host }), internalTls() !== undefined);
}

/**
 * Returns a reader of the master keys for a running server, which throws ConfigError, and their files; none if the keys are in a
 * variable. All other settings stay as they were at the start.
 */
export function reloadableMasterKeys(env: NodeJS.ProcessEnv) {
  const readers = configReaders(env);
  const ownFile = join(readers.dataDir(), ownMasterKeyName);
  const file = textOf(env, settings.masterKeyFile) || ownFile;
  const files = textOf(env, settings.masterKey) === '' ? [file] : [];
  return { files, read: readers.masterKeys };
}

/** Whether the settings name a database on PostgreSQL. */
export function usesPostgres(env: NodeJS.ProcessEnv): boolean {
  return textOf(env, settings.databaseUrl) !== '';
}

/** Reads the data folder alone. */
export function readDataDir(env: NodeJS.ProcessEnv): string {
  return configReaders(env).dataDir();
}

/** Reads the time zone alone. Throws ConfigError. */
export function readTimeZone(env: NodeJS.ProcessEnv): string {
  return configReaders(env).timeZone();
}

/** Returns the files that settings of some kind name. */
function filesOf(
  env: NodeJS.ProcessEnv,
  { isSet }: Source,
  isMeant: (setting: Setting) => boolean,
): string[] {
  return allSettings
    .filter((setting) => (setting.namesFile || setting.watchesFile) && isMeant(setting) && isSet(setting))
    .map((setting) => textOf(env, setting));
}

function readCurrency({ read }: Source): string {
  const currency = read(settings.currency);
  const { name, otherUnits, currencies } = read(settings.provider);
  if (otherUnits.includes(currency))
    refuse(settings.currency, `must not be ${currency}, whose minor unit is another one at ${name}`);
  if (currencies?.includes(currency) === false)
    refuse(settings.currency, `must not be ${currency}, which ${name} does not take`);
  return currency;
}

function readDatabase({ isSet, find, read }: Source): PostgresPlace | undefined {
  const { databaseUrl, databasePassword, databaseCa, databaseCertificate, databaseKey } = settings;
  if (!isSet(databaseUrl)) {
    const file = [databasePassword, databaseCa, databaseCertificate, databaseKey].find(isSet);
    if (file !== undefined) refuse(databaseUrl, `is required if ${file.variable} is set`);
    return undefined;
  }
  const client = readTls({ isSet, find, read }, { certificate: databaseCertificate, key: databaseKey });
  return {
    url: read(databaseUrl),
    passwordFile: find(databasePassword),
    caFile: find(databaseCa),
    certificateFile: client?.certificate,
    keyFile: client?.key,
  };
}

function readBackupDir({ isSet, find }: Source): string | undefined {
  const { backupDir, databaseUrl } = settings;
  if (isSet(backupDir) && isSet(databaseUrl))
    refuse(backupDir, `must not be set if ${databaseUrl.variable} is set: PostgreSQL has backups of its own`);
  return find(backupDir);
}

function readTls(
  { isSet, find, read }: Source,
  { certificate, key, clientCa }: TlsSettings,
): TlsFiles | undefined {
  const given = [certificate, key, clientCa].find((setting) => setting !== undefined && isSet(setting));
  if (given === undefined) return undefined;
  for (const needed of [certificate, key])
    if (!isSet(needed)) refuse(needed, `is required if ${given.variable} is set`);
  return { certificate: read(certificate), key: read(key), clientCa: clientCa && find(clientCa) };
}

function readInternalTls(source: Source): TlsFiles | undefined {
  const files = readTls(source, internalTlsSettings);
  if (files !== undefined && 'path' in source.read(settings.internalAddress))
    refuse(
      settings.internalTlsCert,
      `must not be set if ${settings.internalAddress.variable} is a Unix socket`,
    );
  return files;
}

function readMasterKeys({ isSet, read }: Source): MasterKeySource {
  const { masterKeyFile, masterKey } = settings;
  if (isSet(masterKeyFile) && isSet(masterKey))
    refuse(masterKey, `and ${masterKeyFile.variable} must not both be set`);
  if (isSet(masterKeyFile)) return { keys: read(masterKeyFile) };
  if (isSet(masterKey)) return { keys: read(masterKey) };
  if (read(settings.environment) === 'sandbox')
    return { ownFile: join(read(settings.dataDir), ownMasterKeyName) };
  return refuse(masterKeyFile, `or ${masterKey.variable} must be set in production`);
}

function readLogWitnesses({ isSet, find, read }: Source) {
  const { logWitnesses, logWitnessesRequired, logRefuseRolledBack } = settings;
  const found = readAll({
    witnesses: () => find(logWitnesses) ?? [],
    required: () => read(logWitnessesRequired),
    isRefused: () => find(logRefuseRolledBack),
  });
  const { witnesses, required, isRefused } = found;
  if (required > witnesses.length)
    refuse(
      logWitnessesRequired,
      `must be at most the number of witnesses in ${logWitnesses.variable}, which is ${witnesses.length}`,
    );
  if (isRefused && !isSet(logWitnesses))
    refuse(logWitnesses, `is required if ${logRefuseRolledBack.variable} is yes`);
  if (!isSet(logWitnesses)) return undefined;
  /** Whether filings are rejected while a witness reports that the log was rolled back. */
  const refuseRolledBack = isRefused ?? required > 0;
  return { witnesses, required, refuseRolledBack };
}

function readLogTimeStamps({ isSet, find, read }: Source) {
  const { logTsaUrl, logTsaEvery, logTsaCa } = settings;
  const { url, ...terms } = readAll({
    url: () => find(logTsaUrl),
    everyMs: () => read(logTsaEvery),
    authorities: () => find(logTsaCa),
  });
  if (url !== undefined) return { url, ...terms };
  if (isSet(logTsaCa)) refuse(logTsaUrl, `is required if ${logTsaCa.variable} is set`);
  return undefined;
}

function readWebhooks({ isSet, find, read }: Source) {
  const { webhookNetworks, webhookProxy, webhookCa } = settings;
  // A sandbox that others can reach, or that sends through a proxy, must not let them reach servers on its machine.
  const isForOneMachine = () => {
    const { host } = read(settings.publicAddress);
    const isLocal = host === 'localhost' || isLoopback(host);
    return read(settings.environment) === 'sandbox' && isLocal && !isSet(webhookProxy);
  };
  return readAll({
    /** Networks that endpoints may be in although they are not public. */
    networks: () => find(webhookNetworks) ?? (isForOneMachine() ? loopback : []),
    /** Whether endpoints on this machine may use http. */
    plainLoopback: isForOneMachine,
    /** Forward proxy with its user and password; undefined for none. */
    proxy: () => find(webhookProxy),
    /** PEM: authorities beside those that Node trusts; undefined for none. */
    authorities: () => find(webhookCa),
  });
}

function readMail(env: NodeJS.ProcessEnv, source: Source) {
  const { smtpUrl, smtpPassword, mailFrom, publicUrl } = settings;
  const { isSet, find, read } = source;
  if (!isSet(smtpUrl)) {
    const other = [smtpPassword, mailFrom].find(isSet);
    return other && refuse(smtpUrl, `is required if ${other.variable} is set`);
  }
  const mail = readAll({
    url: () => read(smtpUrl),
    /** Read for each session. */
    passwordFile: () => find(smtpPassword),
    from: () =>
      isSet(mailFrom) ? read(mailFrom) : refuse(mailFrom, `is required if ${smtpUrl.variable} is set`),
  });
  if ((mail.url.username !== '') !== isSet(smtpPassword))
    refuse(smtpPassword, `and a user in ${smtpUrl.variable} must both be set, or neither`);
  if (readOutsideUrl(env, source) === undefined)
    refuse(publicUrl, `is required if ${smtpUrl.variable} is set: notices name it`);
  return mail;
}

function readProviderSettings({ isSet, read }: Source): unknown {
  const { name, settings: own } = read(settings.provider);
  const required = `is required if ${settings.provider.variable} is ${name}`;
  const readers = Object.entries<Setting>(own).map(([member, setting]) => [
    member,
    () => (isSet(setting) ? read(setting) : refuse(setting, required)),
  ]);
  return readAll(Object.fromEntries(readers));
}
