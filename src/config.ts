import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createCalendar } from './domain/calendar.ts';
import type { Environment } from './domain/caller.ts';
import { type MasterKey, parseMasterKeys } from './keys/key-ring.ts';
import {
  parseStripeParties,
  type StripeParties,
  type StripeSettings,
  stripeUrl,
  unitsDifferAtStripe,
} from './payment/stripe/settings.ts';

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
  /** The files that the settings name: of master keys, of the parties at Stripe. */
  readonly namedFiles: readonly string[];
  /** IANA name. */
  readonly timeZone: string;
  /** ISO 4217 code. */
  readonly currency: string;
  /** Where the master keys are; a sandbox makes its own file where it names none. */
  readonly masterKeys: MasterKeySource;
  readonly institution: InstitutionName;
  /** Set if the institution is stripe. */
  readonly stripe: StripeSettings | undefined;
  readonly logLevel: LogLevel;
}

/** Master keys as given, or a file of the data folder that a sandbox keeps by itself. */
export type MasterKeySource = { readonly keys: readonly MasterKey[] } | { readonly ownFile: string };

/** The payment institutions that there are. */
export type InstitutionName = 'simulated' | 'stripe';

/** The levels of pino. */
export type LogLevel = 'fatal' | 'error' | 'warn' | 'info' | 'debug' | 'trace' | 'silent';

/** The settings cannot be used; each fault is a sentence that names a variable and what it must be. */
export class ConfigRefused extends Error {
  override name = 'ConfigRefused';
  readonly faults: readonly string[];

  constructor(faults: readonly string[]) {
    super(faults.join('\n'));
    this.faults = faults;
  }
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
      'file of master keys, one name:64 lower-case hex digits a line, the first sealing; production needs one',
  },
  masterKey: {
    variable: 'ARTSEAL_MASTER_KEY',
    fallback: '',
    meaning: 'the same in the variable itself, separated by commas',
  },
  institution: {
    variable: 'ARTSEAL_PAYMENT_INSTITUTION',
    fallback: 'simulated',
    meaning: 'simulated (sandbox only) or stripe, which needs the first three settings of Stripe',
  },
  stripeApiKey: {
    variable: 'ARTSEAL_STRIPE_API_KEY',
    fallback: '',
    meaning:
      'secret or restricted key: sk_test_ or rk_test_ in a sandbox, sk_live_ or rk_live_ in production',
  },
  stripeWebhookSecret: {
    variable: 'ARTSEAL_STRIPE_WEBHOOK_SECRET',
    fallback: '',
    meaning: 'signing secret of the webhook endpoint, whsec_',
  },
  stripePartiesFile: {
    variable: 'ARTSEAL_STRIPE_PARTIES_FILE',
    fallback: '',
    meaning: 'JSON file that says which customer a buyerId is, and which account a sellerId',
  },
  stripeUrl: {
    variable: 'ARTSEAL_STRIPE_URL',
    fallback: stripeUrl,
    meaning: 'where Stripe is; another place, such as a stand-in, in a sandbox only',
  },
  logLevel: {
    variable: 'ARTSEAL_LOG_LEVEL',
    fallback: 'info',
    meaning: 'fatal, error, warn, info, debug, trace or silent',
  },
} as const satisfies Record<string, Setting>;

/** The variables that say to `artseal call` and the like how to call a service; a sandbox on this machine needs none. */
export const clientVariables = {
  url: 'ARTSEAL_URL',
  apiKey: 'ARTSEAL_API_KEY',
  apiSecret: 'ARTSEAL_API_SECRET',
} as const;

const environments: readonly Environment[] = ['sandbox', 'production'];
const institutionNames: readonly InstitutionName[] = ['simulated', 'stripe'];
const logLevels: readonly LogLevel[] = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'];
const ownMasterKeyFile = 'master-key';
/** By environment: what a key of Stripe is like there. */
const stripeKeys = {
  sandbox: { pattern: /^(sk|rk)_test_\w+$/, rule: 'must be a test key, sk_test_ or rk_test_, in a sandbox' },
  production: {
    pattern: /^(sk|rk)_live_\w+$/,
    rule: 'must be a live key, sk_live_ or rk_live_, in production',
  },
} as const satisfies Record<Environment, { pattern: RegExp; rule: string }>;

const requiredByStripe = `is required where ${settings.institution.variable} is stripe`;

/** A setting as given, or what it is when unset. */
type SettingValue = (name: keyof typeof settings) => string;

/** How to read each member of something. What is read throws ConfigRefused. */
export type Readers<T> = { readonly [Member in keyof T]: () => T[Member] };

/** Reads the settings from the environment. Throws ConfigRefused with the faults of all of them. */
export function readConfig(env: NodeJS.ProcessEnv): Config {
  return readAll(configReaders(env));
}

/** Reads the settings of a service, which needs two addresses, and in production a real institution. Throws ConfigRefused with the faults of all of them. */
export function readServingConfig(env: NodeJS.ProcessEnv): Config {
  const readers = configReaders(env);
  const institution = () => {
    const chosen = { environment: readers.environment(), institution: readers.institution() };
    refuseSimulatedInProduction(chosen);
    return chosen.institution;
  };
  const internalAddress = () => {
    const address = readers.internalAddress();
    refuseSameAddress({ publicAddress: readers.publicAddress(), internalAddress: address });
    return address;
  };
  return readAll({ ...readers, institution, internalAddress });
}

/** host:port of the public door, as it is set. Throws ConfigRefused. */
export function readPublicAddress(env: NodeJS.ProcessEnv): string {
  configReaders(env).publicAddress();
  return env[settings.publicAddress.variable] || settings.publicAddress.fallback;
}

/** A setting that depends on another one reads that, too: its fault is told once. */
function configReaders(env: NodeJS.ProcessEnv): Readers<Config> {
  const value: SettingValue = (name) => env[settings[name].variable] || settings[name].fallback;
  const environment = () => oneOf(settings.environment, value('environment'), environments);
  const currency = () => readCurrency(value('currency'));
  const institution = () => oneOf(settings.institution, value('institution'), institutionNames);
  return {
    environment,
    publicAddress: () => readAddress(settings.publicAddress, value('publicAddress')),
    internalAddress: () => readAddress(settings.internalAddress, value('internalAddress')),
    dataDir: () => value('dataDir'),
    namedFiles: () => [value('masterKeyFile'), value('stripePartiesFile')].filter((file) => file !== ''),
    timeZone: () => readTimeZone(value('timeZone')),
    currency,
    masterKeys: () => readMasterKeys(value, environment),
    institution,
    stripe: () => (institution() === 'stripe' ? readStripe(value, environment, currency) : undefined),
    logLevel: () => oneOf(settings.logLevel, value('logLevel'), logLevels),
  };
}

/** Reads all members. Throws ConfigRefused with every fault, each once. */
export function readAll<T extends object>(readers: Readers<T>): T {
  const faults = new Set<string>();
  const read: Partial<T> = {};
  for (const member of Object.keys(readers) as (keyof T)[]) {
    try {
      read[member] = readers[member]();
    } catch (error) {
      if (!(error instanceof ConfigRefused)) throw error;
      for (const fault of error.faults) faults.add(fault);
    }
  }
  if (faults.size > 0) throw new ConfigRefused([...faults]);
  return read as T;
}

/**
 * Refuses to serve production by an institution that moves no money. It is no rule of readConfig: keys and
 * tokens of a production are issued without any institution. Throws ConfigRefused.
 */
export function refuseSimulatedInProduction(config: Pick<Config, 'environment' | 'institution'>): void {
  if (config.environment === 'production' && config.institution === 'simulated') {
    refuse(settings.institution, 'must name a real institution in production, and simulated is none');
  }
}

/** What `readServingConfig` would refuse about settings that `readConfig` read, a sentence each. */
export function faultsForServing(config: Config): readonly string[] {
  try {
    readAll({
      institution: () => refuseSimulatedInProduction(config),
      internalAddress: () => refuseSameAddress(config),
    });
    return [];
  } catch (error) {
    if (error instanceof ConfigRefused) return error.faults;
    throw error;
  }
}

/** Two doors cannot listen at one address, unless the system chooses their ports. */
function refuseSameAddress(config: Pick<Config, 'publicAddress' | 'internalAddress'>): void {
  const { publicAddress: one, internalAddress: other } = config;
  if (one.port !== 0 && one.port === other.port && one.host === other.host) {
    refuse(settings.publicAddress, `and ${settings.internalAddress.variable} must differ`);
  }
}

/** Variables that look like settings and are none: probably misspelt. */
export function unknownSettings(env: NodeJS.ProcessEnv): string[] {
  const known = new Set<string>(Object.values(settings).map(({ variable }) => variable));
  for (const variable of Object.values(clientVariables)) known.add(variable);
  return Object.keys(env).filter((variable) => variable.startsWith('ARTSEAL_') && !known.has(variable));
}

function refuse({ variable }: Setting, rule: string): never {
  throw new ConfigRefused([`${variable} ${rule}.`]);
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
  return Intl.supportedValuesOf('currency').includes(code)
    ? code
    : refuse(settings.currency, `must be an ISO 4217 code such as CNY, not ${JSON.stringify(code)}`);
}

function readMasterKeys(value: SettingValue, environment: () => Environment): MasterKeySource {
  const [file, text] = [value('masterKeyFile'), value('masterKey')];
  if (file !== '' && text !== '')
    refuse(settings.masterKey, `and ${settings.masterKeyFile.variable} must not both be set`);
  const setting = file === '' ? settings.masterKey : settings.masterKeyFile;
  if (file === '' && text === '') {
    if (environment() === 'sandbox') return { ownFile: join(value('dataDir'), ownMasterKeyFile) };
    refuse(settings.masterKeyFile, `or ${settings.masterKey.variable} must be set in production`);
  }
  try {
    return { keys: parseMasterKeys(file === '' ? text : readFileSync(file, 'utf8')) };
  } catch (error) {
    return refuse(setting, `cannot be used: ${error instanceof Error ? error.message : error}`);
  }
}

function readStripe(
  value: SettingValue,
  environment: () => Environment,
  currency: () => string,
): StripeSettings {
  const { money: _, ...stripe } = readAll({
    money: () => refuseOtherUnits(currency()),
    apiKey: () => readStripeKey(value('stripeApiKey'), environment),
    webhookSecret: () => readWebhookSecret(value('stripeWebhookSecret')),
    url: () => readStripeUrl(value('stripeUrl'), environment),
    parties: () => readStripeParties(value('stripePartiesFile')),
  });
  return stripe;
}

function refuseOtherUnits(currency: string): void {
  if (unitsDifferAtStripe.includes(currency)) {
    refuse(settings.currency, `must not be ${currency}, whose minor unit is another one at Stripe`);
  }
}

function readStripeKey(key: string, environment: () => Environment): string {
  if (key === '') refuse(settings.stripeApiKey, requiredByStripe);
  const { pattern, rule } = stripeKeys[environment()];
  return pattern.test(key) ? key : refuse(settings.stripeApiKey, rule);
}

function readWebhookSecret(secret: string): string {
  if (secret === '') refuse(settings.stripeWebhookSecret, requiredByStripe);
  return /^whsec_[\w+/=-]+$/.test(secret)
    ? secret
    : refuse(settings.stripeWebhookSecret, 'must be a signing secret, whsec_');
}

/** The message never repeats the URL, which may hold a password. */
function readStripeUrl(text: string, environment: () => Environment): string {
  const url = URL.parse(text);
  if (url === null || url.href !== `${url.origin}/`) {
    return refuse(settings.stripeUrl, 'must be an origin such as https://api.stripe.com, without a path');
  }
  if (url.protocol !== 'https:' && !(url.protocol === 'http:' && isLoopback(url.hostname))) {
    refuse(settings.stripeUrl, 'must be https, or http on a loopback address');
  }
  if (environment() === 'production' && url.origin !== stripeUrl) {
    refuse(settings.stripeUrl, `must be ${stripeUrl} in production`);
  }
  return url.origin;
}

function isLoopback(hostname: string): boolean {
  return hostname === 'localhost' || hostname === '[::1]' || /^127(\.\d+){3}$/.test(hostname);
}

function readStripeParties(file: string): StripeParties {
  if (file === '') refuse(settings.stripePartiesFile, requiredByStripe);
  try {
    return parseStripeParties(readFileSync(file, 'utf8'));
  } catch (error) {
    return refuse(
      settings.stripePartiesFile,
      `cannot be used: ${error instanceof Error ? error.message : error}`,
    );
  }
}
