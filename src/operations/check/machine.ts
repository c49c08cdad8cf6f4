import { randomUUID } from 'node:crypto';
import { rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { type Config, settings } from '../../config/config.ts';
import type { Clock } from '../../domain/clock.ts';
import { behindMaxS, clockFaultText, findClockFault } from '../../domain/filing-clock.ts';
import type { Finding } from '../../domain/finding.ts';
import { utcTimestamp } from '../../domain/utc.ts';
import { createClockPart } from '../../health/clock-part.ts';
import { addressText, type ListenAddress, listen } from '../../http/listen/address.ts';
import { changeableByOthers, readableByOthers } from '../../lib/file-access.ts';
import type { Content } from '../../store/handlers/content.ts';
import { freeBytes } from '../../store/sqlite/durable-files.ts';
import { confidentialFiles, trustedFiles } from '../registry.ts';
import type { ServingRecord } from '../serving-record.ts';
import { findingsOf, messageOf } from './finding.ts';

/** Free disk below which there is a fault or a warning, in MiB. The write-ahead log takes 16 before a checkpoint. */
const freeMiB = { fault: 64, warning: 1_024 } as const;
/** Duration of a write to disk above which there is a warning, in milliseconds. */
const slowWriteMs = 1_000;
/** systemd-timesyncd touches it each time it sets the clock. */
const timesyncFile = '/run/systemd/timesync/synchronized';
/** Bytes of a MiB. */
export const bytesOfMiB = 1_048_576;
const root = 0;

/** Checks who may change or read the folder and the files that the deployment trusts. */
export function checkFiles(config: Config): Finding[] {
  const { ok, warning, fault, unchecked } = findingsOf('files');
  const user = process.geteuid?.();
  if (user === undefined) return [unchecked('this system has no Unix users and modes')];
  const owner = statSync(config.dataDir, { throwIfNoEntry: false })?.uid ?? user;
  const faults = changeableByOthers(trustedFiles(config), user === root ? owner : user).map(fault);
  const warnings = readableByOthers(confidentialFiles(config)).map(({ path, mode }) =>
    warning(`${path} (mode ${mode}) may be read by every user of this machine: chmod o-r '${path}'`),
  );
  if (user === root && owner !== root)
    warnings.push(
      warning(
        `run this as the user with id ${owner}, who owns the folder: root can access more than that user`,
      ),
    );
  const found = [...faults, ...warnings];
  return found.length > 0
    ? found
    : [ok('no other user of this machine may change or read what the service trusts')];
}

/** Checks that the disk has room and can be written. */
export function checkDisk(dataDir: string, { monotonicMs }: Clock): Finding {
  const { ok, warning, fault, unchecked } = findingsOf('disk');
  if (statSync(dataDir, { throwIfNoEntry: false }) === undefined)
    return unchecked(`there is no folder ${dataDir} yet`);
  try {
    const free = Math.floor(freeBytes(dataDir) / bytesOfMiB);
    const startedMs = monotonicMs();
    writeThrough(dataDir);
    const ms = Math.ceil(monotonicMs() - startedMs);
    const text = `${free} MiB are free under ${dataDir}, and a write was on disk in ${ms} ms`;
    if (free < freeMiB.fault) return fault(`${text}: make room, or writes fail soon`);
    if (free < freeMiB.warning) return warning(`${text}: make room`);
    return ms > slowWriteMs ? warning(`${text}: calls take as long: check the disk`) : ok(text);
  } catch (error) {
    return fault(`${dataDir} cannot be written: ${messageOf(error)}`);
  }
}

function writeThrough(dataDir: string): void {
  const file = join(dataDir, `.check-${randomUUID()}`);
  try {
    writeFileSync(file, Buffer.alloc(4_096), { flag: 'wx', mode: 0o600, flush: true });
  } finally {
    rmSync(file, { force: true });
  }
}

const wasAhead = '; if it is right and was ahead before: artseal clock accept, and the next filing ends this';

/** Checks the clock against the newest records, and whether filings are accepted by it. */
export async function checkClock(
  clock: Clock,
  { newestFilingMs, newestLeafS: newestS, datedS }: Partial<Content<unknown>> = {},
): Promise<Finding> {
  const { ok, warning, fault } = findingsOf('clock');
  const doubt = await createClockPart(clock, newestFilingMs).findFault();
  const nowMs = clock.nowMs();
  const isBehind = newestFilingMs !== undefined && newestFilingMs - nowMs > behindMaxS * 1_000;
  const toDo = `set it if it is wrong, and have NTP keep it${isBehind ? wasAhead : ''}`;
  if (doubt !== undefined) return fault(`${doubt}: ${toDo}`);
  const refused = findClockFault({ nowS: Math.floor(nowMs / 1_000), newestS, datedS, setByS: 0 });
  if (refused?.kind === 'AHEAD')
    return fault(
      `${clockFaultText(refused)}, and filings are rejected: set it if it is wrong; if it is right: artseal clock accept`,
    );
  if (isBehind)
    return warning(
      `it says ${utcTimestamp(nowMs)}, and the newest filing is of ${utcTimestamp(newestFilingMs)}: ${toDo}`,
    );
  const order = newestFilingMs === undefined || nowMs < newestFilingMs ? '' : ', after the newest filing';
  return ok(`it says ${utcTimestamp(nowMs)}${order}; ${keptBy()}`);
}

/** Says whether NTP sets the clock, if the system shows it. */
function keptBy(): string {
  const synchronised = statSync(timesyncFile, { throwIfNoEntry: false });
  return synchronised === undefined
    ? 'NTP was not checked: see timedatectl or chronyc tracking'
    : `systemd-timesyncd set it last at ${utcTimestamp(synchronised.mtimeMs)}`;
}

/** Checks that the addresses of the listeners are free, or held by the process that serves this folder. */
export async function checkAddresses(config: Config, serving: ServingRecord | undefined): Promise<Finding[]> {
  const listeners = [
    [config.publicAddress, settings.publicAddress.variable],
    [config.internalAddress, settings.internalAddress.variable],
    [config.metricsAddress, settings.metricsAddress.variable],
  ] as const;
  return Promise.all(
    listeners.flatMap(([address, variable]) =>
      address === undefined ? [] : [checkAddress(address, variable, serving)],
    ),
  );
}

async function checkAddress(
  address: ListenAddress,
  variable: string,
  serving: ServingRecord | undefined,
): Promise<Finding> {
  const { ok, fault } = findingsOf('address');
  const named = `${addressText(address)} of ${variable}`;
  if ('port' in address && address.port === 0) return ok(`${named}: the system chooses a free port`);
  const held = serving?.addresses.find((bound) => isBoundAt(bound, address));
  // Listening there could disturb the serving process.
  if (held !== undefined)
    return ok(`${named} is held by the process ${serving?.pid} that serves this folder, as ${held}`);
  try {
    await using server = createServer((socket) => socket.destroy());
    await listen(server, address);
    return ok(`${named} is free`);
  } catch (error) {
    return fault(
      `${named} cannot be listened on: ${messageOf(error)}; stop what holds it, or set another address`,
    );
  }
}

/** Whether a bound address may be this one. A host may be a name, so only the ports are compared. */
function isBoundAt(bound: string, address: ListenAddress): boolean {
  return 'path' in address ? bound === addressText(address) : bound.endsWith(`:${address.port}`);
}
