import { clockFaultText, findClockFault } from '../domain/filing-clock.ts';
import type { Action, CommandGroup } from './command.ts';
import { changes, nowS, reads } from './session.ts';

const show: Action = {
  usage: 'clock show [--json]',
  details: ['Shows the wall clock, the time of the newest record, and whether filings are accepted.'],
  run: reads(async ({ execute, timestamp, show }) => {
    const { newestS, datedS } = await execute({ kind: 'ReadLogClock' });
    const atS = nowS();
    const found = findClockFault({ nowS: atS, newestS, datedS, setByS: 0 });
    const clock = timestamp(atS);
    const newest = newestS === undefined ? undefined : timestamp(newestS);
    const fault = found && clockFaultText(found);
    const verdict =
      fault === undefined
        ? 'are accepted, unless the log of a running server says that the clock was set'
        : `are rejected: ${fault}; if the clock is right, run artseal clock accept`;
    show(
      { clock, newest, fault },
      `wall clock     ${clock}`,
      `newest record  ${newest ?? 'none'}`,
      `filings        ${verdict}`,
    );
  }),
};

const accept: Action = {
  usage: 'clock accept [--reason TEXT] [--json]',
  details: [
    'Accepts the wall clock for filings although it is before the newest record, far ahead of it, or was set by more than a',
    'day. Check the clock twice first: filings keep wrong times. The evidence log records it publicly. The server may run.',
  ],
  run: changes(async ({ execute, timestamp, actor, show }) => {
    const by = actor();
    const { newestS } = await execute({ kind: 'AcceptClock', by });
    const accepted = timestamp(by.atS);
    const newest = newestS === undefined ? undefined : timestamp(newestS);
    show({ accepted, newest }, `accepted       ${accepted}`, `newest record  ${newest ?? 'none'}`);
  }),
};

/** `artseal clock` */
export const clock: CommandGroup = {
  summary: 'show or accept the clock that dates filings',
  actions: [show, accept],
  details: [
    'If the clock was set while the server ran, only the log of the server says whether it rejects filings.',
  ],
};
