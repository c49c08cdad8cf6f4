import { existsSync } from 'node:fs';
import { connect as connectHttp2 } from 'node:http2';
import { connect as connectSocket } from 'node:net';
import { type Config, readServingConfig, settings, unknownSettings } from '../../config/config.ts';
import { readKeyRing } from '../../config/master-key.ts';
import { ConfigError } from '../../config/settings.ts';
import type { Clock } from '../../domain/clock.ts';
import type { Finding } from '../../domain/finding.ts';
import { reachProxy, trusting } from '../../events/webhooks/connect.ts';
import { askAccess } from '../../health/provider-watch.ts';
import { openAdminSocket } from '../../http/listen/address.ts';
import type { KeyRing } from '../../keys/key-ring.ts';
import {
  countSeals,
  findUnopened,
  type SealedKey,
  type Seals,
  sealedLogKeys,
  sealedOfWebhook,
} from '../../keys/sealed-secrets.ts';
import type { Content } from '../../store/handlers/content.ts';
import { postgresBackups } from '../backup/manifest.ts';
import { findProblem, readStanding } from '../backup/standing.ts';
import { readServingRecord, type ServingRecord } from '../serving-record.ts';
import { checkDatabase } from './database.ts';
import { findingsOf, messageOf } from './finding.ts';
import { checkCertificates, checkPlainListeners } from './listeners.ts';
import { checkAddresses, checkClock, checkDisk, checkFiles } from './machine.ts';

/** Timeout of the webhook proxy, in milliseconds. */
const proxyMs = 3_000;

/** Time that the serving process has to answer a ping, in milliseconds. */
const pingMs = 5_000;

/** The part whose faults end the check. */
export const settingsPart = 'settings';

/**
 * Checks a deployment part by part, whether a process serves it or not, and changes nothing. If settings are wrong, it
 * reports only these.
 */
export async function* checkDeployment(env: NodeJS.ProcessEnv, clock: Clock): AsyncGenerator<Finding> {
  const { ok, warning, fault } = findingsOf(settingsPart);
  let config: Config;
  try {
    config = readServingConfig(env);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    yield* error.faults.map((text) => fault(text.replace(/\.$/, '')));
    return;
  }
  const { environment, currency, timeZone, provider, dataDir } = config;
  yield ok(`${environment} in ${dataDir}, ${currency}, ${timeZone}, ${provider.name}`);
  for (const variable of unknownSettings(env))
    yield warning(`${variable} is not a setting and has no effect: artseal help settings lists them`);
  yield* checkFiles(config);
  yield checkDisk(dataDir, clock);

  const database = await checkDatabase(config, clock);
  yield* database.findings;
  yield await checkClock(clock, database.content);
  const serving = yield* checkServing(dataDir);
  yield* checkMasterKeys(config, database.content, serving, Math.floor(clock.nowMs() / 1000));
  yield* await checkAddresses(config, serving);
  yield* checkCertificates(config, clock.nowMs());
  yield* await checkPlainListeners(config);
  yield await checkBackups(config, clock.nowMs());
  yield await checkProvider(config, clock);
  yield await checkWebhooks(config);
}

/** Checks whether a process serves the folder. Returns what it says of itself. */
async function* checkServing(dataDir: string): AsyncGenerator<Finding, ServingRecord | undefined> {
  const { ok, warning, fault, unchecked } = findingsOf('serving');
  try {
    const { isInUse } = await import('../../store/sqlite/folder-lock.ts');
    if (!isInUse(dataDir)) {
      yield ok('no process serves this folder');
      return undefined;
    }
  } catch (error) {
    yield unchecked(`whether a process serves this folder cannot be seen: ${messageOf(error)}`);
    return undefined;
  }
  const record = readServingRecord(dataDir);
  if (record === undefined) {
    yield warning(
      'a process serves this folder, but has not published its id: it is starting, or is an older version',
    );
    return undefined;
  }
  const serves = `the process ${record.pid} serves this folder at ${record.addresses.join(' and ')}`;
  yield (await hangs(dataDir))
    ? fault(`${serves}, but does not respond: see docs/operate/incidents/server-hangs.md`)
    : ok(serves);
  return record;
}

/** Whether the server of the folder accepts a connection to its admin socket, but answers no ping in time. */
async function hangs(dataDir: string): Promise<boolean> {
  using socket = openAdminSocket(dataDir);
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const session = connectHttp2('http://localhost', { createConnection: () => connectSocket(socket.path) });
  const timeout = setTimeout(resolve, pingMs, true);
  session.once('error', () => resolve(false));
  session.once('connect', () => session.ping(() => resolve(false)));
  try {
    return await promise;
  } finally {
    clearTimeout(timeout);
    session.on('error', () => {});
    session.destroy();
  }
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
    return yield unchecked('whether they decrypt the secrets: the database cannot be read');
  const keys = [...content.keys, ...content.webhooks.flatMap(sealedOfWebhook), ...sealedLogKeys(content.log)];
  const unopened = countSeals(findUnopened(keys, keyRing, nowS), nowS);
  for (const { masterKey, secrets } of unopened)
    yield fault(
      `${inNumber(secrets)} encrypted with a master key ${masterKey} that is missing: put it back. Without it these secrets cannot be used`,
    );
  if (unopened.length === 0) yield ok(uses(keyRing, keys, nowS));
  const isKnown = JSON.stringify(serving?.masterKeys) === JSON.stringify(keyRing.masterKeys);
  if (serving !== undefined && !isKnown)
    yield warning(`the server uses other master keys than these settings: run artseal reload`);
}

/** Says what each master key is needed for. */
function uses({ masterKeys }: KeyRing, keys: readonly SealedKey[], nowS: number): string {
  const seals = countSeals(keys, nowS);
  const texts = masterKeys.map(({ name }, place) => {
    const use = useOf(seals.find(({ masterKey }) => masterKey === name));
    return `${name} ${place === 0 ? 'encrypts and ' : ''}${use}`;
  });
  return texts.join('; ');
}

function useOf(seals: Seals | undefined): string {
  if (seals === undefined) return 'decrypts no secret';
  return seals.needed === 0
    ? 'decrypts only secrets of ended keys'
    : `is needed by ${inNumber(seals.needed)}`;
}

const inNumber = (secrets: number): string => (secrets === 1 ? '1 secret' : `${secrets} secrets`);

async function checkProvider(config: Config, clock: Clock): Promise<Finding> {
  const { ok, fault } = findingsOf('provider');
  const { name, movesMoney, open } = config.provider;
  if (!movesMoney) return ok(`${name}: it moves no money and has no server`);
  const provider = await open(config.providerSettings, { dataDir: config.dataDir, clock });
  try {
    const access = await askAccess(provider, clock);
    if (access.kind === 'ACCEPTED') return ok(`${name} accepts the credentials`);
    return access.kind === 'REJECTED'
      ? fault(`${name} rejects the credentials: ${access.why}; set others that it accepts`)
      : fault(`${name} does not respond: ${access.why}; check the network and the status page of ${name}`);
  } finally {
    await provider.close();
  }
}

/** Says where webhooks are sent, and checks that their proxy can be reached. */
async function checkWebhooks({ webhooks }: Config): Promise<Finding> {
  const { ok, fault } = findingsOf('webhooks');
  const { networks, proxy, authorities } = webhooks;
  const allowed = networks.map(({ address, bits }) => `${address}/${bits}`);
  const to = `they are sent to public addresses ${allowed.length === 0 ? 'only' : `and ${allowed.join(', ')}`}`;
  if (proxy === undefined) return ok(to);
  // Leaves out user and password.
  const named = `${proxy.protocol}//${proxy.host}`;
  try {
    await reachProxy(proxy, trusting(authorities), AbortSignal.timeout(proxyMs));
    return ok(`${to}, through ${named}, which accepts connections`);
  } catch (error) {
    return fault(
      `the proxy ${named} of ${settings.webhookProxy.variable} cannot be reached: ${messageOf(error)}; nothing is sent until it can`,
    );
  }
}

/** Checks the regular backups by the rules of the server's log and metrics. */
async function checkBackups(config: Config, nowMs: number): Promise<Finding> {
  const { ok, unchecked, ...problems } = findingsOf('backup');
  const { dataDir, environment, database, backups } = config;
  if (database !== undefined) return unchecked(postgresBackups);
  const terms = { dataDir, isRequired: environment === 'production', ...backups };
  const standing = await readStanding(terms);
  const problem = findProblem(standing, terms, nowMs);
  if (problem !== undefined) return problems[problem.level](problem.text);
  const { last } = standing;
  return last === undefined
    ? ok('none are taken regularly, which a sandbox does not need')
    : ok(`the last verified one was taken at ${last.takenAt}: ${last.file}`);
}
