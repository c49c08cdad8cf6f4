import { checkDeployment, settingsPart } from '../operations/check/deployment.ts';
import type { Finding } from '../operations/check/finding.ts';
import { systemClock } from '../operations/registry.ts';
import { type Command, exitCodes } from './command.ts';

/** `artseal check` */
export const check: Command = {
  usage: 'check [--json]',
  summary:
    'check the deployment: settings, files, disk, database, evidence log, keys, provider, TLS, backups',
  details: [
    'Prints a line for each part: ok, warning, fault or unchecked, the part, and what is found or what to do.',
    'Changes nothing. The server may run. Reads the whole database once, which takes long for a large one.',
    'Exit codes: 0 no fault (warnings do not count), 1 a part has a fault, 2 a setting is invalid.',
  ],
  run: async (words, { env, print, printError }) => {
    const faults: Finding[] = [];
    for await (const finding of checkDeployment(env, systemClock)) {
      print(words.has('json') ? JSON.stringify(finding) : line(finding));
      if (finding.level === 'fault') faults.push(finding);
    }
    if (!faults.some(({ part }) => part === settingsPart))
      return faults.length === 0 ? exitCodes.done : exitCodes.failed;
    printError('artseal: nothing else was checked: correct the settings first');
    return exitCodes.usage;
  },
};

function line({ level, part, text }: Finding): string {
  return `${level.padEnd(9)} ${part.padEnd(12)} ${text.replaceAll(/\s+/g, ' ')}`;
}
