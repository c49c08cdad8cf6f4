import { CheckResponse_Level, MaintenanceService } from '../../gen/artseal/v1/maintenance_pb.ts';
import type { Finding } from '../domain/finding.ts';
import { checkDeployment, settingsPart } from '../operations/check/deployment.ts';
import { systemClock } from '../operations/registry.ts';
import { type Command, exitCodes } from './command.ts';
import { clientOf, connectRemote } from './connection.ts';
import { wordIn } from './session.ts';

/** `artseal check` */
export const check: Command = {
  usage: 'check [--url URL] [--json]',
  summary:
    'check the deployment: settings, files, disk, database, evidence log, keys, provider, TLS, backups',
  details: [
    'Prints a line for each part: its level (ok, warning, fault or unchecked), its name, and what was found or what to do.',
    'Changes nothing. The server may run, hang or be stopped. Reads the whole database once, which takes long for a large one.',
    '--url https://HOST:PORT is the internal API of a remote server, which then checks itself. It needs a token with the scope operate',
    'in ARTSEAL_TOKEN.',
    'Exit codes: 0 no fault (warnings do not count), 1 a part has a fault, 2 a setting is invalid.',
  ],
  run: async (words, { env, print, printError }) => {
    const faults: Finding[] = [];
    const url = words.text('url');
    const findings = url === undefined ? checkDeployment(env, systemClock) : findingsOfServer(url, env);
    for await (const finding of findings) {
      print(words.has('json') ? JSON.stringify(finding) : findingLine(finding));
      if (finding.level === 'fault') faults.push(finding);
    }
    if (faults.length === 0) return exitCodes.done;
    if (!faults.some(({ part }) => part === settingsPart)) return exitCodes.failed;
    printError('artseal: nothing else was checked: correct the settings first');
    return exitCodes.usage;
  },
};

/** The findings of a remote server about itself. */
async function* findingsOfServer(url: string, env: NodeJS.ProcessEnv): AsyncGenerator<Finding> {
  const connection = connectRemote(url, env);
  const findings = clientOf(MaintenanceService, async () => connection).check({});
  for await (const { level, part, text } of findings)
    yield { level: wordIn(CheckResponse_Level, level).toLowerCase() as Finding['level'], part, text };
}

function findingLine({ level, part, text }: Finding): string {
  return `${level.padEnd(9)} ${part.padEnd(12)} ${text.replaceAll(/\s+/g, ' ')}`;
}
