import { MaintenanceService } from '../../gen/artseal/v1/maintenance_pb.ts';
import type { Action, CommandGroup } from './command.ts';
import { calls } from './session.ts';

const show: Action = {
  usage: 'clock show [--json]',
  details: ['Shows the wall clock, the time of the newest record, and whether filings are accepted.'],
  ...calls(async ({ client, show }) => {
    const response = await client(MaintenanceService).getClock({});
    const { clock } = response;
    const [newest, fault] = [response.newestRecord || undefined, response.fault || undefined];
    const verdict =
      fault === undefined
        ? 'are accepted'
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
