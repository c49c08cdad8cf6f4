import { isAbsolute, join } from 'node:path';
import { createCalendar } from '../domain/calendar.ts';
import type { Environment } from '../domain/caller.ts';
import { parseAuthorities } from '../evidence/log/time-stamp.ts';
import type { TimeStampTerms } from '../evidence/log/time-stamping.ts';
import type { Witness } from '../evidence/log/witness.ts';
import { type ListenAddress, type TcpAddress, urlOf } from '../http/listen/address.ts';
import { readTlsFiles, TlsFileError, type TlsFiles } from '../http/listen/tls-files.ts';
import { socketPathBytesMax } from '../http/listen/unix-socket.ts';
import { type MasterKey, parseMasterKeys } from '../keys/key-ring.ts';
import { isLoopback, loopback, type Network, parseNetwork } from '../lib/networks.ts';
import { type ProviderKind, type Setting, SettingError } from '../payments/provider.ts';
import { parseHttpUrl, parseRequiredWitnesses, parseWitnesses, parseYesOrNo } from './log-witnesses.ts';
import { providers } from './payment-providers.ts';
import { faultOf, oneOf, type Readers, readAll, readFrom, refuse, type Source, textOf } from './settings.ts';

/** The settings of a deployment, checked. */
export interface Config {
  readonly environment: Environment;
  readonly publicAddress: TcpAddress;
  /** What the public door speaks TLS with; undefined where it speaks none. */
  readonly publicTls: TlsFiles | undefined;
  readonly internalAddress: ListenAddress;
  readonly internalTls: TlsFiles | undefined;
  /** Those whose X-Forwarded-For is believed, for the log. */
  readonly trustedProxies: readonly Network[];
  /** Where metrics are read; undefined for nowhere. */
  readonly metricsAddress: TcpAddress | undefined;
  readonly dataDir: string;
  /** IANA name. */
  readonly timeZone: string;
  /** ISO 4217 code. */
  readonly currency: string;
  /** Where the master keys are; a sandbox makes its own file where it names none. */
  readonly masterKeys: MasterKeySource;
  readonly logLevel: LogLevel;
  readonly logFormat: LogFormat;
  /** How long calls are still taken once the process is told to stop and says that it is not ready, in seconds. */
  readonly drainDelayS: number;
  /** How long a buyer may take to act where the provider asks for it. */
  readonly buyerDeadlineMs: number;
  readonly backups: RegularBackups;
  /** What the evidence log is published under; undefined for a name that a sandbox makes of its secret. */
  readonly logOrigin: string | undefined;
  /** Who cosigns the evidence log; undefined where nobody is asked to. */
  readonly logWitnesses: LogWitnesses | undefined;
  /** The authority that stamps the evidence log; undefined for none. */
  readonly logTimeStamps: TimeStampTerms | undefined;
  readonly webhooks: WebhookSettings;
  readonly provider: ProviderKind;
  /** As the `open` of the provider takes them. */
  readonly providerSettings: unknown;
  /** A sentence for each variable that is set and was a setting once. */
  readonly retired: readonly string[];
  /** The files that the settings name, those of providers that are not chosen among them. */
  readonly namedFiles: readonly string[];
  /** Those of them that everybody may read. */
  readonly publicFiles: readonly string[];
}

/** How the endpoints of platforms are reached. */
export interface WebhookSettings {
  /** Networks that endpoints may be in although they are not public. */
  readonly networks: readonly Network[];
  /** Whether endpoints on this machine may be reached without TLS. */
  readonly plainLoopback: boolean;
  /** The forward proxy that they are reached through, http: or https:, with its user and password; undefined for none. */
  readonly proxy: URL | undefined;
  /** PEM: certificates that vouch for endpoints, beside those that Node trusts; undefined for none. */
  readonly authorities: string | undefined;
}

/** Witnesses, and how many of them have to cosign what is published. */
export interface LogWitnesses {
  readonly witnesses: readonly Witness[];
  readonly required: number;
  /** Whether filings are refused while one of them finds that the log was rolled back. */
  readonly refuseRolledBack: boolean;
}

/** Master keys as given, or a file of the data folder that a sandbox keeps by itself. */
export type MasterKeySource = { readonly keys: readonly MasterKey[] } | { readonly ownFile: string };

/** Backups that are taken regularly. */
export interface RegularBackups {
  /** Where a serving process puts those that it takes; undefined if it takes none. */
  readonly folder: string | undefined;
  /** How many it keeps, at least 1. */
  readonly keep: number;
  /** How often they are taken, by a serving process or by something else. */
  readonly everyMs: number;
}

/** The levels of pino. */
export type LogLevel = 'fatal' | 'error' | 'warn' | 'info' | 'debug' | 'trace' | 'silent';

/** How lines of the log are written: `auto` is text on a terminal and json otherwise. */
export type LogFormat = 'auto' | 'json' | 'text';

/** The file of a sandbox's own master key in its data folder. */
export const ownMasterKeyName = 'master-key';
const drainDelayMaxS = 60;

/** The settings that every deployment has, whatever its provider. */
export const settings = {
  environment: {
    variable: 'ARTSEAL_ENVIRONMENT',
    fallback: 'sandbox',
    meaning: 'sandbox or production; the database is stamped with it',
    read: oneOf<Environment>(['sandbox', 'production']),
  },
  publicAddress: {
    variable: 'ARTSEAL_PUBLIC_ADDR',
    fallback: '127.0.0.1:8080',
    meaning: 'where external platforms call: signed REST',
    read: parseAddress,
  },
  publicTlsCert: {
    variable: 'ARTSEAL_PUBLIC_TLS_CERT',
    fallback: '',
    meaning:
      'PEM file of the certificate, its chain behind it, with which the public door speaks TLS; read again when it changes',
    watchesFile: true,
    isPublic: true,
    read: asItIs,
  },
  publicTlsKey: {
    variable: 'ARTSEAL_PUBLIC_TLS_KEY',
    fallback: '',
    meaning: 'PEM file of its private key, without a passphrase',
    watchesFile: true,
    read: asItIs,
  },
  internalAddress: {
    variable: 'ARTSEAL_INTERNAL_ADDR',
    fallback: '127.0.0.1:8081',
    meaning: 'where internal systems call: Connect, gRPC, gRPC-Web; or unix:/path for a Unix socket',
    read: parseInternalAddress,
  },
  internalTlsCert: {
    variable: 'ARTSEAL_INTERNAL_TLS_CERT',
    fallback: '',
    meaning: 'PEM file of the certificate with which the internal door speaks TLS, likewise',
    watchesFile: true,
    isPublic: true,
    read: asItIs,
  },
  internalTlsKey: {
    variable: 'ARTSEAL_INTERNAL_TLS_KEY',
    fallback: '',
    meaning: 'PEM file of its private key, without a passphrase',
    watchesFile: true,
    read: asItIs,
  },
  internalTlsClientCa: {
    variable: 'ARTSEAL_INTERNAL_TLS_CLIENT_CA',
    fallback: '',
    meaning:
      'PEM file of authorities; internal systems then need a certificate of theirs, beside their token',
    watchesFile: true,
    isPublic: true,
    read: asItIs,
  },
  trustedProxies: {
    variable: 'ARTSEAL_TRUSTED_PROXIES',
    fallback: '',
    meaning:
      'proxies whose X-Forwarded-For is believed for the log: addresses and networks (10.0.0.0/8), by commas',
    read: parseNetworks,
  },
  metricsAddress: {
    variable: 'ARTSEAL_METRICS_ADDR',
    fallback: '127.0.0.1:9464',
    meaning: 'where Prometheus reads metrics, at /metrics, without any credentials; off for nowhere',
    read: (text: string) => (text === 'off' ? undefined : parseAddress(text)),
  },
  dataDir: {
    variable: 'ARTSEAL_DATA_DIR',
    fallback: './data',
    meaning: 'the folder that holds artseal.db',
    read: asItIs,
  },
  timeZone: {
    variable: 'ARTSEAL_TIME_ZONE',
    fallback: 'UTC',
    meaning: 'business time zone, an IANA name: timestamps, years, quota months',
    read: parseTimeZone,
  },
  currency: {
    variable: 'ARTSEAL_CURRENCY',
    fallback: 'CNY',
    meaning: 'the settlement currency, whose minor units prices and amounts are in',
    read: parseCurrency,
  },
  masterKeyFile: {
    variable: 'ARTSEAL_MASTER_KEY_FILE',
    fallback: '',
    meaning:
      'file of master keys, one name:64 lower-case hex digits a line, the first sealing; production needs one',
    namesFile: true,
    read: parseMasterKeys,
  },
  masterKey: {
    variable: 'ARTSEAL_MASTER_KEY',
    fallback: '',
    meaning: 'the same in the variable itself, separated by commas',
    secret: true,
    read: parseMasterKeys,
  },
  logLevel: {
    variable: 'ARTSEAL_LOG_LEVEL',
    fallback: 'info',
    meaning: 'fatal, error, warn, info, debug, trace or silent',
    read: oneOf<LogLevel>(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent']),
  },
  logFormat: {
    variable: 'ARTSEAL_LOG_FORMAT',
    fallback: 'auto',
    meaning: 'json, text or auto: text on a terminal, json otherwise',
    read: oneOf<LogFormat>(['auto', 'json', 'text']),
  },
  drainDelay: {
    variable: 'ARTSEAL_DRAIN_DELAY',
    fallback: '0',
    meaning: 'seconds, to 60, in which calls are still taken after SIGTERM while readiness is off already',
    read: parseDrainDelay,
  },
  buyerDeadline: {
    variable: 'ARTSEAL_BUYER_DEADLINE',
    fallback: '1h',
    meaning: 'how long a buyer may take where the provider asks them to act, from 1m to 24h',
    read: parseBuyerDeadline,
  },
  backupDir: {
    variable: 'ARTSEAL_BACKUP_DIR',
    fallback: '',
    meaning: 'folder on another disk that serve takes backups into; unset for none',
    read: asItIs,
  },
  backupEvery: {
    variable: 'ARTSEAL_BACKUP_EVERY',
    fallback: '24h',
    meaning:
      'how often, from 1m to 20d; set it also if a timer or cron takes them: a backup older than twice this is reported',
    read: parsePeriod,
  },
  backupKeep: {
    variable: 'ARTSEAL_BACKUP_KEEP',
    fallback: '7',
    meaning: 'how many of them are kept, from 1 to 1000',
    read: parseBackupsKept,
  },
  logOrigin: {
    variable: 'ARTSEAL_TLOG_ORIGIN',
    fallback: '',
    meaning:
      'name of the evidence log for ever, a URL without its scheme such as log.example.com/artseal; production needs one',
    read: parseLogOrigin,
  },
  logWitnesses: {
    variable: 'ARTSEAL_TLOG_WITNESSES_FILE',
    fallback: '',
    meaning:
      'file of witnesses that cosign the evidence log, a line each: verifier key, blank, submission prefix; unset for none',
    namesFile: true,
    isPublic: true,
    read: parseWitnesses,
  },
  logWitnessesRequired: {
    variable: 'ARTSEAL_TLOG_WITNESSES_REQUIRED',
    fallback: '0',
    meaning:
      'how many of them have to cosign before anything is published; 0: their cosignatures are taken if they come in time',
    read: parseRequiredWitnesses,
  },
  logRefuseRolledBack: {
    variable: 'ARTSEAL_TLOG_REFUSE_ROLLED_BACK',
    fallback: '',
    meaning:
      'yes or no: whether filings are refused while a witness finds that the log was rolled back; unset: yes if witnesses are required',
    read: parseYesOrNo,
  },
  logTsaUrl: {
    variable: 'ARTSEAL_TLOG_TSA_URL',
    fallback: '',
    meaning: 'address of an RFC 3161 authority that time stamps the evidence log; unset for none',
    read: parseHttpUrl,
  },
  logTsaEvery: {
    variable: 'ARTSEAL_TLOG_TSA_EVERY',
    fallback: '1h',
    meaning: 'how often at most, if the log grew, from 1m to 20d',
    read: parsePeriod,
  },
  logTsaCa: {
    variable: 'ARTSEAL_TLOG_TSA_CA',
    fallback: '',
    meaning:
      'PEM file of the certificates that vouch for that authority; unset: any signature of a certificate for time stamps is taken',
    namesFile: true,
    isPublic: true,
    read: parseAuthorities,
  },
  webhookNetworks: {
    variable: 'ARTSEAL_WEBHOOK_NETWORKS',
    fallback: '',
    meaning:
      'private networks that endpoints of webhooks may be in: addresses and networks (10.20.0.0/16), by commas; unset: public addresses alone, and loopback too in a sandbox that listens on loopback and has no proxy for webhooks',
    read: parseNetworks,
  },
  webhookProxy: {
    variable: 'ARTSEAL_WEBHOOK_PROXY',
    fallback: '',
    meaning:
      'forward proxy that webhooks are sent through, http:// or https://, with user and password if it wants them; unset for none',
    // It may hold a password.
    secret: true,
    read: parseProxy,
  },
  webhookCa: {
    variable: 'ARTSEAL_WEBHOOK_CA',
    fallback: '',
    meaning:
      'PEM file of certificates that vouch for endpoints of webhooks and for that proxy, beside the public authorities; unset for none',
    namesFile: true,
    isPublic: true,
    read: parseAuthorities,
  },
  provider: {
    variable: 'ARTSEAL_PAYMENT_PROVIDER',
    fallback: 'simulated',
    meaning: `who holds or reserves the money: ${providers.map(inHelp).join(' or ')}`,
    read: oneOf(providers, ({ name }) => name),
  },
} as const satisfies Record<string, Setting>;

/** The settings that name the files of a door. */
interface TlsSettings {
  readonly certificate: Setting<string>;
  readonly key: Setting<string>;
  readonly clientCa?: Setting<string>;
}

const publicTlsSettings: TlsSettings = {
  certificate: settings.publicTlsCert,
  key: settings.publicTlsKey,
};
const internalTlsSettings: TlsSettings = {
  certificate: settings.internalTlsCert,
  key: settings.internalTlsKey,
  clientCa: settings.internalTlsClientCa,
};

/** All settings, in the order in which the help shows them and faults are told. */
export const allSettings: readonly Setting[] = [
  ...Object.values(settings),
  ...providers.flatMap((provider) => Object.values<Setting>(provider.settings)),
];

/** The variables that say to `artseal call` and the like how to call a service; a sandbox on this machine needs none. */
export const clientVariables = {
  url: 'ARTSEAL_URL',
  apiKey: 'ARTSEAL_API_KEY',
  apiSecret: 'ARTSEAL_API_SECRET',
} as const;

/** Reads the settings from the environment. Throws ConfigError with the faults of all of them. */
export function readConfig(env: NodeJS.ProcessEnv): Config {
  return readAll(configReaders(env));
}

/** Reads the settings of a service, of which more is asked. Throws ConfigError with the faults of all of them. */
export function readServingConfig(env: NodeJS.ProcessEnv): Config {
  return readAll(configReaders(env), faultsForServing);
}

/**
 * What is wrong with settings that were read, or with those of them that could be, where a service is to run on them: a
 * sentence for each fault. It is no fault elsewhere: keys and tokens of a production are issued without any provider.
 */
export function faultsForServing(config: Partial<Config>): readonly string[] {
  const { environment, provider, publicTls, internalTls, retired = [] } = config;
  const faults = [
    ...retired,
    ...faultsOfTls(publicTls, publicTlsSettings),
    ...faultsOfTls(internalTls, internalTlsSettings),
    ...sharedAddresses(config),
  ];
  if (environment === 'production' && provider?.movesMoney === false) {
    const rule = `must name a real provider in production, and ${provider.name} is none`;
    faults.push(faultOf(settings.provider, rule));
  }
  return faults;
}

/** A fault for each two listeners that are given the same address. */
function sharedAddresses(config: Partial<Config>): string[] {
  const listeners = ['publicAddress', 'internalAddress', 'metricsAddress'] as const;
  return listeners.flatMap((one, place) =>
    listeners
      .slice(place + 1)
      .filter((other) => areSame(config[one], config[other]))
      .map((other) => faultOf(settings[one], `and ${settings[other].variable} must differ`)),
  );
}

/** Two listeners cannot have one address, unless the system chooses their ports. */
function areSame(one: ListenAddress | undefined, other: ListenAddress | undefined): boolean {
  if (one === undefined || other === undefined || 'path' in one || 'path' in other) return false;
  return one.port !== 0 && one.port === other.port && one.host === other.host;
}

/** What is wrong with the files of a door. */
function faultsOfTls(files: TlsFiles | undefined, settingOf: TlsSettings): readonly string[] {
  try {
    if (files !== undefined) readTlsFiles(files);
    return [];
  } catch (error) {
    if (!(error instanceof TlsFileError)) throw error;
    return [faultOf(settingOf[error.file] ?? settingOf.certificate, error.message)];
  }
}

/** Where the public door is, as it is set: http://host:port, or https. Throws ConfigError. */
export function readPublicUrl(env: NodeJS.ProcessEnv): string {
  const { publicAddress, publicTls } = configReaders(env);
  publicAddress();
  return urlOf(textOf(env, settings.publicAddress), publicTls() !== undefined);
}

/** Something that a running service can read anew, as far as it is in files. */
export interface Reloadable<Value> {
  /** The files; none if all of it is in variables. */
  readonly files: readonly string[];
  /** Throws ConfigError. */
  read(): Value;
}

/** What a running service can read anew; all other settings are those of its start. */
export interface ReloadableSettings {
  readonly masterKeys: Reloadable<MasterKeySource>;
}

/** How a service that runs on these variables reads anew what they name. Throws ConfigError. */
export function reloadableSettings(env: NodeJS.ProcessEnv): ReloadableSettings {
  const readers = configReaders(env);
  const { masterKeyFile, masterKey } = settings;
  const named = (setting: Setting) => (textOf(env, setting) === '' ? [] : [textOf(env, setting)]);
  const ownFile = () => join(readers.dataDir(), ownMasterKeyName);
  return {
    masterKeys: {
      files: named(masterKey).length > 0 ? [] : [...named(masterKeyFile), ownFile()].slice(0, 1),
      read: readers.masterKeys,
    },
  };
}

/** The data folder alone: for what needs no other setting. */
export function readDataDir(env: NodeJS.ProcessEnv): string {
  return configReaders(env).dataDir();
}

/** What restoring a backup asks. Throws ConfigError with the faults of all of them. */
export function readRestoreConfig(env: NodeJS.ProcessEnv): Pick<Config, 'timeZone' | 'currency'> {
  const { timeZone, currency } = configReaders(env);
  return readAll({ timeZone, currency });
}

/** Variables that look like settings and are none: probably misspelt. */
export function unknownSettings(env: NodeJS.ProcessEnv): string[] {
  const known = new Set([...allSettings.map(({ variable }) => variable), ...Object.values(clientVariables)]);
  return Object.keys(env).filter((variable) => variable.startsWith('ARTSEAL_') && !known.has(variable));
}

/** A member that depends on another one reads that, too: its fault is told once. A file may be a pipe: it is read once. */
function configReaders(env: NodeJS.ProcessEnv): Readers<Config> {
  const source = readFrom(env, () => source.read(settings.environment));
  return {
    environment: () => source.read(settings.environment),
    publicAddress: () => source.read(settings.publicAddress),
    publicTls: () => readTls(source, publicTlsSettings),
    internalAddress: () => source.read(settings.internalAddress),
    internalTls: () => readInternalTls(source),
    trustedProxies: () => source.read(settings.trustedProxies),
    metricsAddress: () => source.read(settings.metricsAddress),
    dataDir: () => source.read(settings.dataDir),
    timeZone: () => source.read(settings.timeZone),
    currency: () => readCurrency(source),
    masterKeys: () => readMasterKeys(source),
    logLevel: () => source.read(settings.logLevel),
    logFormat: () => source.read(settings.logFormat),
    drainDelayS: () => source.read(settings.drainDelay),
    buyerDeadlineMs: () => source.read(settings.buyerDeadline),
    backups: () => readBackups(source),
    logOrigin: () => (source.isSet(settings.logOrigin) ? source.read(settings.logOrigin) : undefined),
    logWitnesses: () => readLogWitnesses(source),
    logTimeStamps: () => readLogTimeStamps(source),
    webhooks: () => readWebhooks(source),
    provider: () => source.read(settings.provider),
    providerSettings: () => readProviderSettings(source),
    retired: () =>
      providers
        .flatMap(({ retired = {} }) => Object.entries(retired))
        .filter(([variable]) => env[variable])
        .map(([variable, instead]) => `${variable} ${instead}.`),
    namedFiles: () => filesOf(env, source, () => true),
    publicFiles: () => filesOf(env, source, ({ isPublic }) => isPublic === true),
  };
}

/** The files that settings of some kind name. */
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

function readTls({ isSet, read }: Source, { certificate, key, clientCa }: TlsSettings): TlsFiles | undefined {
  const given = [certificate, key, clientCa].find((setting) => setting !== undefined && isSet(setting));
  if (given === undefined) return undefined;
  for (const needed of [certificate, key])
    if (!isSet(needed)) refuse(needed, `is required where ${given.variable} is set`);
  return {
    certificate: read(certificate),
    key: read(key),
    clientCa: clientCa && isSet(clientCa) ? read(clientCa) : undefined,
  };
}

function readInternalTls(source: Source): TlsFiles | undefined {
  const files = readTls(source, internalTlsSettings);
  if (files !== undefined && 'path' in source.read(settings.internalAddress))
    refuse(
      settings.internalTlsCert,
      `must not be set where ${settings.internalAddress.variable} is a Unix socket`,
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

function readBackups({ isSet, read }: Source): RegularBackups {
  return readAll({
    folder: () => (isSet(settings.backupDir) ? read(settings.backupDir) : undefined),
    everyMs: () => read(settings.backupEvery),
    keep: () => read(settings.backupKeep),
  });
}

function readLogWitnesses({ isSet, read }: Source): LogWitnesses | undefined {
  const { logWitnesses, logWitnessesRequired, logRefuseRolledBack } = settings;
  const isAsked = isSet(logWitnesses);
  const found = readAll({
    witnesses: () => (isAsked ? read(logWitnesses) : []),
    required: () => read(logWitnessesRequired),
    isRefused: () => (isSet(logRefuseRolledBack) ? read(logRefuseRolledBack) : undefined),
  });
  const count = found.witnesses.length;
  if (found.required > count)
    refuse(
      logWitnessesRequired,
      `must be at most the number of witnesses in ${logWitnesses.variable}, which is ${count}`,
    );
  if (found.isRefused && !isAsked)
    refuse(logWitnesses, `is required where ${logRefuseRolledBack.variable} is yes`);
  const { witnesses, required, isRefused: refuseRolledBack = required > 0 } = found;
  return isAsked ? { witnesses, required, refuseRolledBack } : undefined;
}

function readLogTimeStamps({ isSet, read }: Source): TimeStampTerms | undefined {
  const { logTsaUrl, logTsaEvery, logTsaCa } = settings;
  const { url, ...terms } = readAll({
    url: () => (isSet(logTsaUrl) ? read(logTsaUrl) : undefined),
    everyMs: () => read(logTsaEvery),
    authorities: () => (isSet(logTsaCa) ? read(logTsaCa) : undefined),
  });
  if (url !== undefined) return { url, ...terms };
  if (isSet(logTsaCa)) refuse(logTsaUrl, `is required where ${logTsaCa.variable} is set`);
  return undefined;
}

function readWebhooks({ isSet, read }: Source): WebhookSettings {
  const { webhookNetworks, webhookProxy, webhookCa } = settings;
  // Whoever else reaches the sandbox, or its proxy, must not reach the servers of that machine by it.
  const isForOneMachine = () => {
    const { host } = read(settings.publicAddress);
    const isLocal = host === 'localhost' || isLoopback(host);
    return read(settings.environment) === 'sandbox' && isLocal && !isSet(webhookProxy);
  };
  return readAll({
    networks: () => (isSet(webhookNetworks) || !isForOneMachine() ? read(webhookNetworks) : loopback),
    plainLoopback: isForOneMachine,
    proxy: () => (isSet(webhookProxy) ? read(webhookProxy) : undefined),
    authorities: () => (isSet(webhookCa) ? read(webhookCa) : undefined),
  });
}

function readProviderSettings({ isSet, read }: Source): unknown {
  const { name, settings: own } = read(settings.provider);
  const required = `is required where ${settings.provider.variable} is ${name}`;
  const readers = Object.entries<Setting>(own).map(([member, setting]) => [
    member,
    () => (isSet(setting) ? read(setting) : refuse(setting, required)),
  ]);
  return readAll(Object.fromEntries(readers));
}

function inHelp({ name, movesMoney }: ProviderKind): string {
  return movesMoney ? name : `${name} (sandbox only)`;
}

function asItIs(text: string): string {
  return text;
}

function parseInternalAddress(text: string): ListenAddress {
  const path = /^unix:(.*)$/s.exec(text)?.[1];
  if (path === undefined) return parseAddress(text);
  const isGood = isAbsolute(path) && Buffer.byteLength(path) <= socketPathBytesMax && !/\s/.test(path);
  if (!isGood)
    throw new SettingError(
      `must have an absolute path of at most ${socketPathBytesMax} bytes, without blanks, behind unix:`,
    );
  return { path };
}

function parseNetworks(text: string): Network[] {
  return text
    .split(',')
    .filter((part) => part.trim() !== '')
    .map((part) => {
      const network = parseNetwork(part.trim());
      if (network === undefined)
        throw new SettingError('must be addresses and networks such as 127.0.0.1,10.0.0.0/8,fd00::/8');
      return network;
    });
}

function parseProxy(text: string): URL {
  const url = URL.parse(text);
  const isGood =
    (url?.protocol === 'http:' || url?.protocol === 'https:') && url.port !== '0' && hasReadableUser(url);
  if (isGood && url.pathname === '/' && url.search === '' && url.hash === '') return url;
  throw new SettingError('must be the address of a proxy, http://host:port or https://, without a path');
}

/** Whether user and password of a URL can be read: what is escaped in them has to be UTF-8. */
function hasReadableUser({ username, password }: URL): boolean {
  try {
    decodeURIComponent(`${username}:${password}`);
    return true;
  } catch {
    return false;
  }
}

function parseAddress(text: string): TcpAddress {
  const [, host = '', digits = ''] = /^(\[[0-9a-fA-F:.]+\]|[^:[\]\s]+):(\d{1,5})$/.exec(text) ?? [];
  const port = Number(digits);
  if (host === '' || port > 65_535) throw new SettingError('must be host:port with a port up to 65535');
  return { host: host.replace(/^\[(.*)\]$/, '$1'), port };
}

function parseDrainDelay(text: string): number {
  const seconds = Number(text);
  if (!/^\d{1,2}$/.test(text) || seconds > drainDelayMaxS)
    throw new SettingError(`must be whole seconds from 0 to ${drainDelayMaxS}`);
  return seconds;
}

const msPerUnit = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;
const periodMaxMs = 20 * msPerUnit.d;

/** Milliseconds of a period such as 90s, 15m, 24h or 7d, of a minute at least. Throws SettingError. */
export function parsePeriod(text: string): number {
  const [, count, unit] = /^(\d{1,9})([smhd])$/.exec(text) ?? [];
  const ms = Number(count) * msPerUnit[unit as keyof typeof msPerUnit];
  if (ms >= msPerUnit.m && ms <= periodMaxMs) return ms;
  throw new SettingError('must be a period such as 15m, 24h or 7d, from 1m to 20d');
}

/** Reads how long a buyer may take. Throws SettingError. */
function parseBuyerDeadline(text: string): number {
  const ms = parsePeriod(text);
  if (ms <= msPerUnit.d) return ms;
  throw new SettingError('must be a period such as 30m or 2h, from 1m to 24h');
}

/** Reads how many backups are kept. Throws SettingError. */
export function parseBackupsKept(text: string): number {
  const kept = /^\d{1,4}$/.test(text) ? Number(text) : 0;
  if (kept >= 1 && kept <= 1_000) return kept;
  throw new SettingError('must be a whole number from 1 to 1000');
}

const logOriginMax = 200;

function parseLogOrigin(text: string): string {
  const isGood = /^[!-*,-~]+$/.test(text) && !text.includes('://') && text.length <= logOriginMax;
  if (isGood) return text;
  throw new SettingError(
    `must be a URL without its scheme, of ASCII without blanks and +, of at most ${logOriginMax} characters`,
  );
}

function parseTimeZone(name: string): string {
  try {
    // An offset or a whole date-time would be taken as well, but neither knows of changes to come.
    if (!/^[A-Za-z][A-Za-z0-9_+/-]*$/.test(name)) throw new RangeError('not a name');
    createCalendar(name);
    return name;
  } catch {
    throw new SettingError('must be an IANA time zone such as Asia/Shanghai');
  }
}

function parseCurrency(code: string): string {
  if (!Intl.supportedValuesOf('currency').includes(code))
    throw new SettingError('must be an ISO 4217 code such as CNY');
  return code;
}
