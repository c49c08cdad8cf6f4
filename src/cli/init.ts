import { type Config, faultsForServing, readConfig, settings } from '../config/config.ts';
import { faultOf } from '../config/settings.ts';
import { requiredOrigin } from '../evidence/log/origin.ts';
import { openRegistry } from '../operations/registry.ts';
import { databaseFile } from '../store/sqlite/location.ts';
import { type Command, exitCodes } from './command.ts';

/** `artseal init` */
export const init: Command = {
  usage: 'init',
  summary: 'create the database of a new deployment',
  details: [
    'Binds it to ARTSEAL_ENVIRONMENT and ARTSEAL_CURRENCY. Fails if the folder has a database.',
    'Run it before the first start of a production. A sandbox creates its database when it starts.',
  ],
  run: async (_, { env, print }) => {
    const config = readConfig(env);
    const { store } = await openRegistry(config, 'NEW');
    await store.close();
    print(`created ${databaseFile(config.dataDir)}: ${config.environment}, ${config.currency}`);
    print(`master key ${masterKeyOf(config)}: keep a copy elsewhere: without it no secret can be opened`);
    print('next: run artseal serve, and artseal key create for each platform');
    const faults = [...faultsForServing(config)];
    if (config.environment === 'production' && config.logOrigin === undefined)
      faults.push(faultOf(settings.logOrigin, requiredOrigin({ names: [], origin: undefined })));
    if (faults.length > 0) print(`before artseal serve: ${faults.join(' ')}`);
    return exitCodes.done;
  },
};

/** The file of the sealing key, or its name in the settings. */
function masterKeyOf({ masterKeys }: Config): string {
  return 'ownFile' in masterKeys ? masterKeys.ownFile : `${masterKeys.keys[0]?.name} of the settings`;
}
