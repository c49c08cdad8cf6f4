import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type MasterKey, parseMasterKeys } from './access/key-ring.ts';
import { createCalendar } from './domain/calendar.ts';
import type { Environment } from './domain/caller.ts';

/** An address to listen on. */
export interface ListenAddress {
  readonly host: string;
  /** 0 lets the system choose. */
  readonly port: number;
}

/** The settings of a deployment, checked. */
export interface Config {
  readonly environment: Environment;
  readonly publicAddress: ListenAddress;
  readonly internalAddress: ListenAddress;
  readonly dataDir: string;
  /** IANA name. */
  readonly timeZone: string;
  /** ISO 4217 code. */
  readonly currency: string;
  /** Where the master keys are; a sandbox makes its own file where it names none. */
  readonly masterKeys: MasterKeySource;
  readonly institution: 'simulated';
  readonly logLevel: LogLevel;
}

/** Master keys as given, or a file of the data folder that a sandbox keeps by itself. */
export type MasterKeySource = { readonly keys: readonly MasterKey[] } | { readonly ownFile: string };

/** The levels of pino. */
export type LogLevel = 'fatal' | 'error' | 'warn' | 'info' | 'debug' | 'trace' | 'silent';

/** The settings cannot be used; each message names a variable and what it must be. */
export class ConfigRefused extends Error {
  override name = 'ConfigRefused';
}

/** One setting: its variable, what it is when unset, and what it is for, as the help shows it. */
export interface Setting {
  readonly variable: string;
  readonly fallback: string;
  readonly meaning: string;
}

/** All settings, in the order in which the help shows them. */
export const settings = {
  environment: {
    variable: 'ARTSEAL_ENVIRONMENT',
    fallback: 'sandbox',
    meaning: 'sandbox or production; the database is stamped with it',
  },
  publicAddress: {
    variable: 'ARTSEAL_PUBLIC_ADDR',
    fallback: '127.0.0.1:8080',
    meaning: 'where external platforms call: signed REST',
  },
  internalAddress: {
    variable: 'ARTSEAL_INTERNAL_ADDR',
    fallback: '127.0.0.1:8081',
    meaning: 'where internal systems call: Connect, gRPC, gRPC-Web',
  },
  dataDir: { variable: 'ARTSEAL_DATA_DIR', fallback: './data', meaning: 'the folder that holds artseal.db' },
  timeZone: {
    variable: 'ARTSEAL_TIME_ZONE',
    fallback: 'UTC',
    meaning: 'business time zone, an IANA name: timestamps, years, quota months',
  },
  currency: {
    variable: 'ARTSEAL_CURRENCY',
    fallback: 'CNY',
    meaning: 'the settlement currency, whose minor units prices and amounts are in',
  },
  masterKeyFile: {
    variable: 'ARTSEAL_MASTER_KEY_FILE',
    fallback: '',
    meaning:
      'file of master keys, one name:64 hex digits a line, the first one sealing; production needs one',
  },
  masterKey: {
    variable: 'ARTSEAL_MASTER_KEY',
    fallback: '',
    meaning: 'the same in the variable itself, separated by commas',
  },
  institution: {
    variable: 'ARTSEAL_PAYMENT_INSTITUTION',
    fallback: 'simulated',
    meaning: 'simulated (sandbox only)',
  },
  logLevel: {
    variable: 'ARTSEAL_LOG_LEVEL',
    fallback: 'info',
    meaning: 'fatal, error, warn, info, debug, trace or silent',
  },
} as const satisfies Record<string, Setting>;

const logLevels: readonly LogLevel[] = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'];
const ownMasterKeyFile = 'master-key';

/** Reads the settings from the environment. Throws ConfigRefused. */
export function readConfig(env: NodeJS.ProcessEnv): Config {
  const value = (name: keyof typeof settings): string =>
    env[settings[name].variable] || settings[name].fallback;
  const environment = oneOf(settings.environment, value('environment'), ['sandbox', 'production']);
  const dataDir = value('dataDir');
  const institution = oneOf(settings.institution, value('institution'), ['simulated']);
  const masterKeys = readMasterKeys(value('masterKeyFile'), value('masterKey'), environment, dataDir);
  if (environment === 'production') {
    refuse(
      settings.institution,
      'must name a real institution in production; this version has only the simulated one',
    );
  }
  return {
    environment,
    publicAddress: readAddress(settings.publicAddress, value('publicAddress')),
    internalAddress: readAddress(settings.internalAddress, value('internalAddress')),
    dataDir,
    timeZone: readTimeZone(value('timeZone')),
    currency: readCurrency(value('currency')),
    masterKeys,
    institution,
    logLevel: oneOf(settings.logLevel, value('logLevel'), logLevels),
  };
}

/** Variables that look like settings and are none: probably misspelt. */
export function unknownSettings(env: NodeJS.ProcessEnv): string[] {
  const known = new Set<string>(Object.values(settings).map(({ variable }) => variable));
  const clientOnly = ['ARTSEAL_URL', 'ARTSEAL_API_KEY', 'ARTSEAL_API_SECRET', 'ARTSEAL_TOKEN'];
  for (const variable of clientOnly) known.add(variable);
  return Object.keys(env).filter((variable) => variable.startsWith('ARTSEAL_') && !known.has(variable));
}

function refuse({ variable }: Setting, rule: string): never {
  throw new ConfigRefused(`${variable} ${rule}.`);
}

function oneOf<T extends string>(setting: Setting, value: string, allowed: readonly T[]): T {
  return (
    allowed.find((candidate) => candidate === value) ??
    refuse(setting, `must be ${allowed.join(' or ')}, not ${JSON.stringify(value)}`)
  );
}

function readAddress(setting: Setting, text: string): ListenAddress {
  const [, host = '', digits = ''] = /^(\[[0-9a-fA-F:.]+\]|[^:[\]\s]+):(\d{1,5})$/.exec(text) ?? [];
  const port = Number(digits);
  if (host === '' || port > 65_535)
    refuse(setting, `must be host:port with a port up to 65535, not ${JSON.stringify(text)}`);
  return { host: host.replace(/^\[(.*)\]$/, '$1'), port };
}

function readTimeZone(name: string): string {
  try {
    // An offset or a whole date-time would be taken as well, but neither knows of changes to come.
    if (!/^[A-Za-z][A-Za-z0-9_+/-]*$/.test(name)) throw new RangeError('not a name');
    createCalendar(name);
    return name;
  } catch {
    return refuse(
      settings.timeZone,
      `must be an IANA time zone such as Asia/Shanghai, not ${JSON.stringify(name)}`,
    );
  }
}

function readCurrency(code: string): string {
  return /^[A-Z]{3}$/.test(code)
    ? code
    : refuse(settings.currency, `must be an ISO 4217 code such as CNY, not ${JSON.stringify(code)}`);
}

function readMasterKeys(
  file: string,
  text: string,
  environment: Environment,
  dataDir: string,
): MasterKeySource {
  if (file !== '' && text !== '')
    refuse(settings.masterKey, `and ${settings.masterKeyFile.variable} must not both be set`);
  const setting = file === '' ? settings.masterKey : settings.masterKeyFile;
  if (file === '' && text === '') {
    if (environment === 'sandbox') return { ownFile: join(dataDir, ownMasterKeyFile) };
    refuse(settings.masterKeyFile, `or ${settings.masterKey.variable} must be set in production`);
  }
  try {
    return { keys: parseMasterKeys(file === '' ? text : readFileSync(file, 'utf8')) };
  } catch (error) {
    return refuse(setting, `cannot be used: ${error instanceof Error ? error.message : error}`);
  }
}
