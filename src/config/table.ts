import type { Environment } from '../domain/caller.ts';
import { parseAuthorities } from '../evidence/log/time-stamping.ts';
import { parseMasterKeys } from '../keys/key-ring.ts';
import { type LogLevel, logLevels } from '../lib/log.ts';
import type { ProviderKind, Setting } from '../payments/provider.ts';
import { providers } from './payment-providers.ts';
import { oneOf } from './settings.ts';
import {
  parseAddress,
  parseBackupPeriod,
  parseBackupsKept,
  parseCurrency,
  parseDatabaseUrl,
  parseEmail,
  parseHttpUrl,
  parseInternalAddress,
  parseLogOrigin,
  parseNetworks,
  parseProxy,
  parseSmtpUrl,
  parseTimeZone,
  parseWitnesses,
  period,
  wholeNumber,
  witnessesMax,
} from './values.ts';

const logFormats = ['json', 'text', 'auto'] as const;

/** How log lines are written: `auto` is text on a terminal and JSON otherwise. */
export type LogFormat = (typeof logFormats)[number];

const asItIs = (text: string): string => text;
const yesOrNo = oneOf([true, false], (is) => (is ? 'yes' : 'no'));
const nameInHelp = ({ name, movesMoney }: ProviderKind) => (movesMoney ? name : `${name} (sandbox only)`);

/** A file that is read at the start, and that everybody may read. */
const publicFile = { namesFile: true, isPublic: true } as const;
const secret = { secret: true } as const;

/** A row of the table: variable, how its text is read, its line in the help, and if it has one, its default. */
const row = <Value>(
  variable: `ARTSEAL_${string}`,
  read: (text: string) => Value,
  meaning: string,
  more: Partial<Pick<Setting, 'fallback' | 'namesFile' | 'watchesFile' | 'isPublic' | 'secret'>> = {},
): Setting<Value> => ({ variable, fallback: '', read, meaning, ...more });

/** The row of a file that is read when it is needed, and again when it changes. */
const watchedFile = (variable: `ARTSEAL_${string}`, meaning: string) =>
  row(variable, asItIs, meaning, { watchesFile: true });

/** The row of such a file that everybody may read. */
const watchedPublicFile = (variable: `ARTSEAL_${string}`, meaning: string) =>
  row(variable, asItIs, meaning, { watchesFile: true, isPublic: true });

/** The settings of every deployment, whatever its payment provider. */
export const settings = {
  environment: row(
    'ARTSEAL_ENVIRONMENT',
    oneOf<Environment>(['sandbox', 'production']),
    'sandbox or production; a database belongs to one of them for good',
    { fallback: 'sandbox' },
  ),
  publicAddress: row('ARTSEAL_PUBLIC_ADDR', parseAddress, 'listen address of the public API: signed REST', {
    fallback: '127.0.0.1:8080',
  }),
  publicTlsCert: watchedPublicFile(
    'ARTSEAL_PUBLIC_TLS_CERT',
    'PEM file: certificate and chain of the public API, read again when it changes',
  ),
  publicTlsKey: watchedFile('ARTSEAL_PUBLIC_TLS_KEY', 'PEM file: its private key, without a passphrase'),
  publicUrl: row(
    'ARTSEAL_PUBLIC_URL',
    parseHttpUrl,
    'address at which others reach the public API, such as https://registry.example: for links on certificates and in mails',
  ),
  internalAddress: row(
    'ARTSEAL_INTERNAL_ADDR',
    parseInternalAddress,
    'listen address of the internal API: Connect, gRPC, gRPC-Web; or unix:/path for a Unix socket',
    { fallback: '127.0.0.1:8081' },
  ),
  internalTlsCert: watchedPublicFile(
    'ARTSEAL_INTERNAL_TLS_CERT',
    'PEM file: certificate and chain of the internal API, read again when it changes',
  ),
  internalTlsKey: watchedFile('ARTSEAL_INTERNAL_TLS_KEY', 'PEM file: its private key, without a passphrase'),
  internalTlsClientCa: watchedPublicFile(
    'ARTSEAL_INTERNAL_TLS_CLIENT_CA',
    'PEM file: authorities of client certificates, which internal clients then need beside their token',
  ),
  trustedProxies: row(
    'ARTSEAL_TRUSTED_PROXIES',
    parseNetworks,
    'proxies whose X-Forwarded-For is trusted: addresses and networks (10.0.0.0/8), separated by commas',
  ),
  metricsAddress: row(
    'ARTSEAL_METRICS_ADDR',
    (text) => (text === 'off' ? undefined : parseAddress(text)),
    'listen address of /metrics for Prometheus, without authentication; off for none',
    { fallback: '127.0.0.1:9464' },
  ),
  dataDir: row('ARTSEAL_DATA_DIR', asItIs, 'folder of artseal.db and the other files of the server', {
    fallback: './data',
  }),
  databaseUrl: row(
    'ARTSEAL_DATABASE_URL',
    parseDatabaseUrl,
    'database on PostgreSQL, postgres://USER@HOST/DATABASE, without a password; unset: artseal.db in ARTSEAL_DATA_DIR',
    secret,
  ),
  databasePassword: watchedFile(
    'ARTSEAL_DATABASE_PASSWORD_FILE',
    'file: password of that user, read again at each connection',
  ),
  databaseCa: watchedPublicFile(
    'ARTSEAL_DATABASE_CA_FILE',
    'PEM file: authorities of the certificate of PostgreSQL, in place of the public ones',
  ),
  databaseCertificate: watchedPublicFile(
    'ARTSEAL_DATABASE_CERTIFICATE_FILE',
    'PEM file: client certificate for PostgreSQL',
  ),
  databaseKey: watchedFile('ARTSEAL_DATABASE_KEY_FILE', 'PEM file: its private key, without a passphrase'),
  timeZone: row(
    'ARTSEAL_TIME_ZONE',
    parseTimeZone,
    'business time zone, an IANA name: for timestamps, years and quota months',
    { fallback: 'UTC' },
  ),
  currency: row(
    'ARTSEAL_CURRENCY',
    parseCurrency,
    'settlement currency; prices and amounts are in its minor unit',
    { fallback: 'CNY' },
  ),
  masterKeyFile: row(
    'ARTSEAL_MASTER_KEY_FILE',
    parseMasterKeys,
    'file of master keys, a line each: name:64 lower-case hex digits; the first one encrypts; production needs one',
    { namesFile: true },
  ),
  masterKey: row(
    'ARTSEAL_MASTER_KEY',
    parseMasterKeys,
    'the same in the variable itself, separated by commas',
    secret,
  ),
  logLevel: row(
    'ARTSEAL_LOG_LEVEL',
    oneOf(Object.keys(logLevels) as LogLevel[]),
    'fatal, error, warn, info, debug, trace or silent',
    { fallback: 'info' },
  ),
  logFormat: row(
    'ARTSEAL_LOG_FORMAT',
    oneOf(logFormats),
    'json, text or auto: text on a terminal, else json',
    { fallback: 'auto' },
  ),
  drainDelay: row(
    'ARTSEAL_DRAIN_DELAY',
    wholeNumber(0, 60),
    'seconds, up to 60, that the server keeps serving after SIGTERM while /readyz fails',
    { fallback: '0' },
  ),
  buyerDeadline: row(
    'ARTSEAL_BUYER_DEADLINE',
    period('1m', '24h'),
    'time that a buyer has to complete a payment, from 1m to 24h',
    { fallback: '1h' },
  ),
  backupDir: row('ARTSEAL_BACKUP_DIR', asItIs, 'folder on another disk for backups that the server takes'),
  backupEvery: row(
    'ARTSEAL_BACKUP_EVERY',
    parseBackupPeriod,
    'backup period, from 1m to 20d; set it also if cron takes backups: one older than two periods is reported',
    { fallback: '24h' },
  ),
  backupKeep: row('ARTSEAL_BACKUP_KEEP', parseBackupsKept, 'number of backups to keep, from 1 to 1000', {
    fallback: '7',
  }),
  logOrigin: row(
    'ARTSEAL_TLOG_ORIGIN',
    parseLogOrigin,
    'permanent name of the evidence log, a URL without scheme such as log.example.com/artseal; production needs one',
  ),
  logWitnesses: row(
    'ARTSEAL_TLOG_WITNESSES_FILE',
    parseWitnesses,
    'file of witnesses that cosign the evidence log, a line each: verifier key, blank, URL',
    publicFile,
  ),
  logWitnessesRequired: row(
    'ARTSEAL_TLOG_WITNESSES_REQUIRED',
    wholeNumber(0, witnessesMax),
    'cosignatures required before a checkpoint is published; 0: those that arrive in time are added',
    { fallback: '0' },
  ),
  logRefuseRolledBack: row(
    'ARTSEAL_TLOG_REFUSE_ROLLED_BACK',
    yesOrNo,
    'yes or no: reject filings while a witness reports a rollback of the log; unset: yes if witnesses are required',
  ),
  logTsaUrl: row(
    'ARTSEAL_TLOG_TSA_URL',
    parseHttpUrl,
    'URL of an RFC 3161 time-stamping authority for the evidence log',
  ),
  logTsaEvery: row(
    'ARTSEAL_TLOG_TSA_EVERY',
    period('1m', '20d'),
    'time-stamp period while the log grows, from 1m to 20d',
    { fallback: '1h' },
  ),
  logTsaCa: row(
    'ARTSEAL_TLOG_TSA_CA',
    parseAuthorities,
    'PEM file: certificates that this authority must chain to; unset: any certificate for time stamping',
    publicFile,
  ),
  webhookNetworks: row(
    'ARTSEAL_WEBHOOK_NETWORKS',
    parseNetworks,
    'private networks that webhooks may be sent to (10.20.0.0/16), separated by commas; unset: public addresses, ' +
      'and loopback in a sandbox that listens on loopback and has no webhook proxy',
  ),
  // The URL of a proxy may contain a password.
  webhookProxy: row(
    'ARTSEAL_WEBHOOK_PROXY',
    parseProxy,
    'forward proxy for webhooks, http:// or https://, with user and password if needed',
    secret,
  ),
  webhookCa: row(
    'ARTSEAL_WEBHOOK_CA',
    parseAuthorities,
    'PEM file: authorities to trust for webhook endpoints and that proxy, beside the public ones',
    publicFile,
  ),
  accessForm: row(
    'ARTSEAL_ACCESS_FORM',
    yesOrNo,
    'yes or no: whether /register of the public API has a form with which people pre-register',
    { fallback: 'no' },
  ),
  // The URL of a mail server may contain a password by mistake.
  smtpUrl: row(
    'ARTSEAL_SMTP_URL',
    parseSmtpUrl,
    'mail server for notices, smtp://USER@HOST:PORT, or smtps:// for TLS from the start, without a password; it needs TLS ' +
      'unless it is on this machine',
    secret,
  ),
  smtpPassword: watchedFile(
    'ARTSEAL_SMTP_PASSWORD_FILE',
    'file: password of that user, read again for each session',
  ),
  mailFrom: row('ARTSEAL_MAIL_FROM', parseEmail, 'e-mail address that notices are from'),
  provider: row(
    'ARTSEAL_PAYMENT_PROVIDER',
    oneOf(providers, ({ name }) => name),
    `payment provider that holds the money: ${providers.map(nameInHelp).join(' or ')}`,
    { fallback: 'simulated' },
  ),
};

/** All settings, in the order in which the help lists them and faults are reported. */
export const allSettings: readonly Setting[] = [
  ...Object.values(settings),
  ...providers.flatMap((provider) => Object.values<Setting>(provider.settings)),
];

/** The variables of `artseal call` and other clients. A client on the machine of the server needs none of them. */
export const clientVariables = {
  url: 'ARTSEAL_URL',
  apiKey: 'ARTSEAL_API_KEY',
  apiSecret: 'ARTSEAL_API_SECRET',
  token: 'ARTSEAL_TOKEN',
  ca: 'ARTSEAL_CLIENT_CA_FILE',
  certificate: 'ARTSEAL_CLIENT_CERT_FILE',
  key: 'ARTSEAL_CLIENT_KEY_FILE',
} as const;

/** The ARTSEAL_ variables of the environment that are no settings: probably misspelt. */
export function unknownSettings(env: NodeJS.ProcessEnv): string[] {
  const known = new Set([...allSettings.map(({ variable }) => variable), ...Object.values(clientVariables)]);
  return Object.keys(env).filter((variable) => variable.startsWith('ARTSEAL_') && !known.has(variable));
}
