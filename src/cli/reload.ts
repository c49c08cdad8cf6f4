import { MaintenanceService, ReloadResponse_Part_Result } from '../../gen/artseal/v1/maintenance_pb.ts';
import { type Command, exitCodes } from './command.ts';
import { calls, wordIn } from './session.ts';

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
