import { MaintenanceService, ReloadResponse_Part_Result } from '../../gen/artseal/v1/maintenance_pb.ts';
import { aheadMaxS } from '../domain/clock.ts';
import { durationText } from '../domain/filing-clock.ts';
import { durationMs } from '../lib/timing.ts';
import { type Action, type Command, type CommandGroup, exitCodes, UsageError } from './command.ts';
import { calls, wordIn } from './session.ts';

const show: Action = {
  usage: 'clock show [--json]',
  details: ['Shows the wall clock, the time of the newest record, and whether filings are accepted.'],
  ...calls(async ({ client, show }) => {
    const response = await client(MaintenanceService).getClock({});
    const { clock } = response;
    const sandbox = response.sandboxClock || undefined;
    const [newest, fault] = [response.newestRecord || undefined, response.fault || undefined];
    const verdict =
      fault === undefined
        ? 'are accepted'
        : `are rejected: ${fault}; if the clock is right, run artseal clock accept`;
    show(
      { clock, sandbox, newest, fault },
      `wall clock     ${clock}`,
      ...(sandbox === undefined ? [] : [`sandbox clock  ${sandbox}`]),
      `newest record  ${newest ?? 'none'}`,
      `filings        ${verdict}`,
    );
  }),
};

const accept: Action = {
  usage: 'clock accept [--reason TEXT] [--json]',
  details: [
    'Accepts the wall clock for filings although it is before the newest record, far ahead of it, or was set by more than a',
    'day. Check the clock twice first: the time of a filing cannot be corrected. The public evidence log records it.',
  ],
  ...calls(async ({ client, reason, show }) => {
    const { accepted, newestRecord } = await client(MaintenanceService).acceptClock({ reason });
    const newest = newestRecord || undefined;
    show({ accepted, newest }, `accepted       ${accepted}`, `newest record  ${newest ?? 'none'}`);
  }),
};

/** `artseal clock` */
export const clock: CommandGroup = {
  summary: 'show or accept the clock that dates filings',
  actions: [show, accept],
  details: ['Only a running server knows whether the clock was set while it ran.'],
};

const advance: Action = {
  usage: 'sandbox advance DURATION [--reason TEXT] [--json]',
  details: [
    'Advances the clock of a sandbox by a DURATION such as 90m, 12h or 7d, for good: up to 3650d in all. Holds, retries, months and',
    'retention follow this clock. It runs on from there, also after a restart. Filings, the evidence log, signatures, keys, tokens,',
    'TLS and the audit log keep the real time. It needs the simulated payment provider.',
  ],
  ...calls(async ({ words, client, reason, show }) => {
    const duration = words.required('DURATION');
    const seconds = durationMs(duration) / 1_000;
    if (!(seconds >= 1 && seconds <= aheadMaxS))
      throw new UsageError(`takes a DURATION from 1s to 3650d, as in 90m, 12h or 7d, not '${duration}'`);
    const { sandboxClock, aheadSeconds } = await client(MaintenanceService).advanceClock({ seconds, reason });
    show(
      { sandbox: sandboxClock, aheadSeconds },
      `sandbox clock  ${sandboxClock}`,
      `ahead by       ${durationText(aheadSeconds)}`,
    );
  }),
};

/** `artseal sandbox` */
export const sandbox: CommandGroup = {
  summary: 'advance the clock of a sandbox',
  actions: [advance],
  details: [],
};

/** `artseal instances` */
export const instances: Command = {
  usage: 'instances [--json]',
  summary: 'show the instances that serve the database',
  details: [
    'Shows host, process, version and start of each instance, and which one leads: it signs the evidence log, sends webhooks and',
    'recovers orders. One that crashed or lost the database is shown as GONE for an hour.',
  ],
  ...calls(async ({ client, show }) => {
    const { instances } = await client(MaintenanceService).listInstances({});
    for (const { host, processId, version, since, seenSecondsAgo, isGone, isLeading, isThis } of instances) {
      const state = isGone ? `GONE, seen ${seenSecondsAgo} s ago` : isLeading ? 'leads' : 'serves';
      show(
        { host, processId, version, since, seenSecondsAgo, isGone, isLeading, isThis },
        `${host}  process ${processId}  ${version}  since ${since}  ${state}${isThis ? '  (this one)' : ''}`,
      );
    }
  }),
};

/** What a line says of a part. */
const texts: Readonly<Record<string, string>> = {
  RELOADED: 'reloaded',
  FAILED: 'NOT reloaded, what was in use stays',
  NOT_RELOADABLE: 'not reloaded',
};

/** `artseal reload` */
export const reload: Command = {
  usage: 'reload [--json]',
  summary: 'have the running server read its master keys and certificates again',
  details: [
    'Does what SIGHUP does, and shows what the server uses now: the names of the master keys, and when certificates expire. All',
    'other settings change only with a restart. If a file cannot be used, what was in use stays, and the exit code is 1. If no',
    'server runs, there is nothing to reload: the exit code is 1, too.',
  ],
  ...calls(async ({ client, show }) => {
    const { parts } = await client(MaintenanceService).reload({});
    if (parts.length === 0) throw new Error('no server runs, so there is nothing to reload.');
    const { FAILED } = ReloadResponse_Part_Result;
    for (const { name, result: number, detail } of parts) {
      const result = wordIn(ReloadResponse_Part_Result, number);
      show({ name, result, detail }, `${name.padEnd(20)}  ${texts[result] ?? result}: ${detail}`);
    }
    return parts.some(({ result }) => result === FAILED) ? exitCodes.failed : exitCodes.done;
  }),
};
