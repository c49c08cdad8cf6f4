import { type Config, faultsForServing, readConfig, settings } from '../config/config.ts';
import { faultOf } from '../config/settings.ts';
import { requiredOrigin } from '../evidence/log/origin.ts';
import { openRegistry } from '../operations/registry.ts';
import { databaseFile } from '../store/sqlite/location.ts';
import { type Command, exitCodes } from './command.ts';

/** `artseal init` */
export const init: Command = {
  usage: 'init',
  summary: 'make the database of a new deployment',
  details: [
    'Stamps it with ARTSEAL_ENVIRONMENT and ARTSEAL_CURRENCY; a folder that has one is refused.',
    'Production needs it before its first start; a sandbox makes its database at its first start by itself.',
  ],
  run: async (_, { env, print }) => {
    const config = readConfig(env);
    const { store } = await openRegistry(config, 'NEW');
    await store.close();
    print(`made ${databaseFile(config.dataDir)}: ${config.environment}, ${config.currency}`);
    print(`master key ${masterKeyOf(config)}: keep a copy elsewhere, no API secret can be opened without it`);
    print('next: artseal serve, and artseal key create for each platform');
    const faults = [...faultsForServing(config)];
    if (config.environment === 'production' && config.logOrigin === undefined)
      faults.push(faultOf(settings.logOrigin, requiredOrigin({ names: [], origin: undefined })));
    if (faults.length > 0) print(`before artseal serve: ${faults.join(' ')}`);
    return exitCodes.done;
  },
};

/** Where the key is that seals from now on, or its name in the settings. */
function masterKeyOf({ masterKeys }: Config): string {
  return 'ownFile' in masterKeys ? masterKeys.ownFile : `${masterKeys.keys[0]?.name} of the settings`;
}
