import { clockFaultText, findClockFault } from '../domain/filing-clock.ts';
import { localActor } from './actor.ts';
import type { Action, CommandGroup } from './command.ts';
import { timestampsOf } from './instant.ts';
import { changeRegistry, withRegistry } from './registry.ts';

const show: Action = {
  usage: 'clock show [--json]',
  details: [
    'shows the wall clock, the time of the newest record, and whether filings can be dated by the clock.',
  ],
  run: (words, terminal) =>
    withRegistry(terminal, async ({ execute }, { timeZone }) => {
      const { newestS, datedS } = await execute({ kind: 'ReadLogClock' });
      const nowS = Math.floor(Date.now() / 1_000);
      const fault = findClockFault({ nowS, newestS, datedS, setByS: 0 });
      const timestamp = timestampsOf(timeZone);
      const told = {
        clock: timestamp(nowS),
        newest: newestS === undefined ? undefined : timestamp(newestS),
        fault: fault && clockFaultText(fault),
      };
      if (words.has('json')) return terminal.print(JSON.stringify(told));
      terminal.print(`wall clock     ${told.clock}`);
      terminal.print(`newest record  ${told.newest ?? 'none'}`);
      terminal.print(
        `filings        ${told.fault === undefined ? 'are taken, unless the log of a running server says that the clock was set' : `are refused: ${told.fault}; if the clock is right: artseal clock accept`}`,
      );
    }),
};

const accept: Action = {
  usage: 'clock accept [--reason TEXT] [--json]',
  details: [
    'says that the wall clock is right as it is, although it is behind the newest record, far ahead of it, or was set by more',
    'than a day: filings are dated by it from now on. Look at it twice, for what is filed by a wrong clock stays so. It is noted',
    'in the evidence log, for everybody to see. Works with the server running.',
  ],
  run: (words, terminal) =>
    changeRegistry(terminal, async ({ execute }, { timeZone }) => {
      const by = localActor(words, terminal);
      const { newestS } = await execute({ kind: 'AcceptClock', by });
      const timestamp = timestampsOf(timeZone);
      const accepted = timestamp(by.atS);
      const newest = newestS === undefined ? undefined : timestamp(newestS);
      if (words.has('json')) return terminal.print(JSON.stringify({ accepted, newest }));
      terminal.print(`accepted       ${accepted}`);
      terminal.print(`newest record  ${newest ?? 'none'}`);
    }),
};

/** `artseal clock` */
export const clock: CommandGroup = {
  summary: 'show whether filings can be dated by the clock, and accept it',
  actions: [show, accept],
  details: [
    'A server that was running when the clock was set knows more: its log says if it refuses filings, and why.',
  ],
};
