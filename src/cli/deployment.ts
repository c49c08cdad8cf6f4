import { isSea } from 'node:sea';
import { type Config, faultsForServing, readConfig, readDataDir, settings } from '../config/config.ts';
import { faultOf } from '../config/settings.ts';
import { requiredOrigin } from '../evidence/log/origin.ts';
import { missingOrigin, openRegistry, upgradeStore } from '../operations/registry.ts';
import { licencesFile, readPackaged } from '../packaging/packaged-files.ts';
import { megabytes } from '../store/sqlite/durable-files.ts';
import { databaseFile } from '../store/sqlite/location.ts';
import { planUpgrade, type UpgradePlan } from '../store/sqlite/upgrade.ts';
import { type Command, exitCodes, UsageError } from './command.ts';

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
  },
};

/** The file of the sealing key, or its name in the settings. */
function masterKeyOf({ masterKeys }: Config): string {
  return 'ownFile' in masterKeys ? masterKeys.ownFile : `${masterKeys.keys[0]?.name} of the settings`;
}

/** `artseal upgrade` */
export const upgrade: Command = {
  usage: 'upgrade [--check] [--without-copy]',
  summary: 'upgrade the database to this version, as serve does',
  details: [
    '--check         only says what an upgrade does. Exit code 3 if there is something to do, 0 if not.',
    '--without-copy  makes no copy of the database: only with a backup elsewhere.',
    'Stop the server before.',
  ],
  run: async (words, { env, print }) => {
    if (words.has('check') && words.has('without-copy')) throw new UsageError('takes one flag at a time');
    const plan = planUpgrade(readDataDir(env));
    const isDue = plan.migrations.length > 0;
    const config = readConfig(env);
    if (words.has('check')) {
      for (const line of described(plan)) print(line);
      const rule = await missingOrigin(config);
      if (rule !== undefined) print(`before artseal serve: ${faultOf(settings.logOrigin, rule)}`);
      return isDue || rule !== undefined ? exitCodes.due : exitCodes.done;
    }
    const keepsCopy = !words.has('without-copy');
    await upgradeStore(config, keepsCopy);
    print(`${plan.database} has schema ${plan.newSchema}`);
    if (isDue && keepsCopy) print(`copy from before, with schema ${plan.schema}: ${plan.copy}`);
    return undefined;
  },
};

function described(plan: UpgradePlan): string[] {
  const { database, schema, newSchema, migrations, copy, neededBytes, freeBytes, estimatedS, isServed } =
    plan;
  if (migrations.length === 0) return [`${database} has schema ${schema}: there is nothing to do`];
  const room = freeBytes < neededBytes ? 'NOT ENOUGH: make room first' : 'enough';
  return [
    `${database} has schema ${schema}; this version has ${newSchema}`,
    ...migrations.map((name) => `  to run: ${name}`),
    `copy from before: ${copy}`,
    `disk: ${megabytes(neededBytes)} needed, ${megabytes(freeBytes)} free: ${room}`,
    `time: about ${estimatedS} s without service`,
    ...(isServed ? ['a server runs on it: stop it first'] : []),
  ];
}

/** `artseal licenses` */
export const licenses: Command = {
  usage: 'licenses',
  summary: 'print the licenses of third-party software',
  details: ['In a checkout and in the npm package they are in the folders of node_modules.'],
  run: async (_, { print }) => {
    print(
      isSea()
        ? readPackaged(licencesFile).toString()
        : 'They are in the folder of each package in node_modules.',
    );
  },
};
