import { isSea } from 'node:sea';
import { type Config, faultsForServing, readConfig, settings } from '../config/config.ts';
import { faultOf } from '../config/settings.ts';
import { requiredOrigin } from '../evidence/log/publication.ts';
import { missingOrigin, openRegistry, upgradeStore } from '../operations/registry.ts';
import { licencesFile, readPackaged } from '../packaging/packaged-files.ts';
import { megabytes } from '../store/sqlite/durable-files.ts';
import { databaseFile } from '../store/sqlite/location.ts';
import { planUpgrade, type UpgradePlan } from '../store/sqlite/upgrade.ts';
import type { PostgresPlace } from '../store/store.ts';
import { type Command, exitCodes, show, type Terminal, UsageError, type Words } from './command.ts';

/** `artseal init` */
export const init: Command = {
  usage: 'init [--json]',
  summary: 'create the database of a new deployment',
  details: [
    'Binds it to ARTSEAL_ENVIRONMENT and ARTSEAL_CURRENCY. Fails if the folder has a database. With ARTSEAL_DATABASE_URL it makes the',
    'tables in that database, which must exist and have none.',
    'Run it before the first start of a production. A sandbox creates its database when it starts.',
  ],
  run: async (words, terminal) => {
    const config = readConfig(terminal.env);
    const { environment, currency } = config;
    const { store } = await openRegistry(config, 'NEW');
    await store.close();
    const faults = [...faultsForServing(config)];
    if (environment === 'production' && config.logOrigin === undefined)
      faults.push(faultOf(settings.logOrigin, requiredOrigin({ names: [], origin: undefined })));
    const database = config.database?.url ?? databaseFile(config.dataDir);
    const { masterKey, masterKeyFile } = masterKeyOf(config);
    show(
      ...([words, terminal] as const),
      { database, environment, currency, masterKey, masterKeyFile, faults },
      `created ${config.database ? 'the tables in ' : ''}${database}: ${environment}, ${currency}`,
      `master key ${masterKeyFile ?? `${masterKey} of the settings`}: keep a copy elsewhere: without it no secret can be opened`,
      'next: run artseal serve, and artseal key create for each platform',
      ...(faults.length === 0 ? [] : [`before artseal serve: ${faults.join(' ')}`]),
    );
  },
};

/** The file of the encrypting master key, or its name in the settings. */
function masterKeyOf({ masterKeys }: Config): { masterKey?: string | undefined; masterKeyFile?: string } {
  return 'ownFile' in masterKeys
    ? { masterKeyFile: masterKeys.ownFile }
    : { masterKey: masterKeys.keys[0]?.name };
}

/** `artseal upgrade` */
export const upgrade: Command = {
  usage: 'upgrade [--check] [--without-copy] [--json]',
  summary: 'upgrade the database to this version, as serve does',
  details: [
    '--check         only says what an upgrade would do. Exit code 3 if there is something to do, 0 if not.',
    '--without-copy  makes no copy of the database. Use it only if you have a backup. On PostgreSQL there is no copy: have a backup.',
    'Stop the server first.',
  ],
  run: async (words, terminal) => {
    const { env } = terminal;
    if (words.has('check') && words.has('without-copy')) throw new UsageError('takes one flag at a time');
    const config = readConfig(env);
    const { dataDir, database: place } = config;
    if (place !== undefined) return upgradePostgres(words, terminal, config, place);
    const plan = planUpgrade(dataDir);
    const isDue = plan.migrations.length > 0;
    const keepsCopy = !words.has('without-copy');
    const copy = isDue && keepsCopy ? plan.copy : undefined;
    if (words.has('check')) {
      const faults = await faultsOfOrigin(config);
      const { estimatedS: estimatedSeconds, ...facts } = plan;
      const lines = [...described(plan), ...faults.map(beforeServing)];
      show(words, terminal, { ...facts, copy, estimatedSeconds, faults }, ...lines);
      return isDue || faults.length > 0 ? exitCodes.due : exitCodes.done;
    }
    await upgradeStore(config, keepsCopy);
    const { database, schema, newSchema } = plan;
    show(
      ...([words, terminal] as const),
      { database, schema, newSchema, copy },
      `${database} has schema ${newSchema}`,
      ...(copy === undefined ? [] : [`copy from before, with schema ${schema}: ${copy}`]),
    );
    return undefined;
  },
};

/** Upgrades a database on PostgreSQL, or only says what that would do. */
async function upgradePostgres(
  words: Words,
  terminal: Terminal,
  config: Config,
  place: PostgresPlace,
): Promise<number> {
  if (words.has('without-copy'))
    throw new UsageError('takes no --without-copy on PostgreSQL, where it makes no copy');
  const { planUpgrade: planOnPostgres } = await import('../store/postgres/inspection.ts');
  const { schema, newSchema, migrations } = await planOnPostgres(place);
  const facts = { database: place.url, schema, newSchema };
  const nothing = `${place.url} has schema ${schema}: there is nothing to do`;
  if (!words.has('check')) {
    await upgradeStore(config, false);
    const done = `${place.url} had schema ${schema} and has schema ${newSchema} now`;
    show(words, terminal, facts, migrations.length === 0 ? nothing : done);
    return exitCodes.done;
  }
  const faults = await faultsOfOrigin(config);
  const due = [
    `${place.url} has schema ${schema}; this version has ${newSchema}`,
    ...migrations.map((name) => `  to run: ${name}`),
    'take a backup of PostgreSQL before: the upgrade makes no copy',
  ];
  const lines = [...(migrations.length === 0 ? [nothing] : due), ...faults.map(beforeServing)];
  show(words, terminal, { ...facts, migrations, faults }, ...lines);
  return migrations.length > 0 || faults.length > 0 ? exitCodes.due : exitCodes.done;
}

const beforeServing = (fault: string): string => `before artseal serve: ${fault}`;

/** The faults of the settings that keep a server from starting after the upgrade. */
async function faultsOfOrigin(config: Config): Promise<string[]> {
  const rule = await missingOrigin(config);
  return rule === undefined ? [] : [faultOf(settings.logOrigin, rule)];
}

function described(plan: UpgradePlan): string[] {
  const { database, schema, newSchema, migrations, copy, neededBytes, freeBytes, estimatedS, isInUse } = plan;
  if (migrations.length === 0) return [`${database} has schema ${schema}: there is nothing to do`];
  const room = freeBytes < neededBytes ? 'NOT ENOUGH: make room first' : 'enough';
  return [
    `${database} has schema ${schema}; this version has ${newSchema}`,
    ...migrations.map((name) => `  to run: ${name}`),
    `copy from before: ${copy}`,
    `disk: ${megabytes(neededBytes)} needed, ${megabytes(freeBytes)} free: ${room}`,
    `time: about ${estimatedS} s without service`,
    ...(isInUse ? ['a server or another command uses the database: stop it first'] : []),
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
