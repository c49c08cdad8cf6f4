import { isSea } from 'node:sea';
import { type Config, faultsForServing, readConfig, settings } from '../config/config.ts';
import { faultOf } from '../config/settings.ts';
import { requiredOrigin } from '../evidence/log/publication.ts';
import { missingOrigin, openRegistry, upgradeStore } from '../operations/registry.ts';
import { licencesFile, readPackaged, scalarLicencesFile } from '../packaging/packaged-files.ts';
import { megabytes } from '../store/sqlite/durable-files.ts';
import { databaseFile } from '../store/sqlite/location.ts';
import { planUpgrade } from '../store/sqlite/upgrade.ts';
import { type Command, exitCodes, UsageError } from './command.ts';

/** `artseal init` */
export const init: Command = {
  usage: 'init [--json]',
  summary: 'create the database of a new deployment',
  details: [
    'Binds it to ARTSEAL_ENVIRONMENT and ARTSEAL_CURRENCY. Fails if the folder has a database. With ARTSEAL_DATABASE_URL it makes the',
    'tables in that database, which must exist and have none.',
    'Run it before the first start of a production. A sandbox creates its database when it starts.',
  ],
  run: async (_, terminal) => {
    const config = readConfig(terminal.env);
    const { environment, currency } = config;
    const { store } = await openRegistry(config, 'NEW');
    await store.close();
    const faults = [...faultsForServing(config)];
    if (environment === 'production' && config.logOrigin === undefined)
      faults.push(faultOf(settings.logOrigin, requiredOrigin({ names: [], origin: undefined })));
    const database = config.database?.url ?? databaseFile(config.dataDir);
    const { masterKeys } = config;
    // The file of the encrypting master key, or its name in the settings.
    const masterKeyFile = 'ownFile' in masterKeys ? masterKeys.ownFile : undefined;
    const masterKey = 'keys' in masterKeys ? masterKeys.keys[0]?.name : undefined;
    terminal.show(
      { database, environment, currency, masterKey, masterKeyFile, faults },
      `created ${config.database ? 'the tables in ' : ''}${database}: ${environment}, ${currency}`,
      `master key ${masterKeyFile ?? `${masterKey} of the settings`}: keep a copy elsewhere: without it no secret can be opened`,
      'next: run artseal serve, and artseal key create for each platform',
      ...(faults.length === 0 ? [] : [`before artseal serve: ${faults.join(' ')}`]),
    );
  },
};

/** `artseal upgrade` */
export const upgrade: Command = {
  usage: 'upgrade [--check] [--without-copy] [--json]',
  summary: 'upgrade the database to this version, as serve does',
  details: [
    '--check         only says what an upgrade would do. Exit code 3 if there is something to do, 0 if not.',
    '--without-copy  makes no copy of the database. Use it only if you have a backup. On PostgreSQL there is no copy: have a backup.',
    'On SQLite, stop the server first. On PostgreSQL, instances may serve meanwhile.',
  ],
  run: async (words, terminal) => {
    const isCheck = words.has('check');
    const keepsCopy = !words.has('without-copy');
    if (isCheck && !keepsCopy) throw new UsageError('takes one flag at a time');
    const config = readConfig(terminal.env);
    const onPostgres = config.database !== undefined;
    if (onPostgres && !keepsCopy)
      throw new UsageError('takes no --without-copy on PostgreSQL, where it makes no copy');
    const { rest, ...plan } = await planOf(config);
    const { database, schema, newSchema, migrations } = plan;
    const isDue = migrations.length > 0;
    const copy = isDue && keepsCopy ? plan.copy : undefined;
    const nothing = `${database} has schema ${schema}: there is nothing to do`;
    if (isCheck) {
      const rule = await missingOrigin(config);
      const faults = rule === undefined ? [] : [faultOf(settings.logOrigin, rule)];
      const due = [
        `${database} has schema ${schema}; this version has ${newSchema}`,
        ...migrations.map((name) => `  to run: ${name}`),
        ...rest,
      ];
      const lines = [
        ...(isDue ? due : [nothing]),
        ...faults.map((fault) => `before artseal serve: ${fault}`),
      ];
      terminal.show({ ...plan, copy, faults }, ...lines);
      return isDue || faults.length > 0 ? exitCodes.due : exitCodes.done;
    }
    await upgradeStore(config, keepsCopy);
    const text = onPostgres
      ? `${database} had schema ${schema} and has schema ${newSchema} now`
      : `${database} has schema ${newSchema}`;
    terminal.show(
      { database, schema, newSchema, copy },
      onPostgres && !isDue ? nothing : text,
      ...(copy === undefined ? [] : [`copy from before, with schema ${schema}: ${copy}`]),
    );
    return undefined;
  },
};

/** What an upgrade would do. `rest` has the lines about one that is due, besides those on its schema and migrations. */
async function planOf({ database: place, dataDir }: Config) {
  if (place !== undefined) {
    const { planUpgrade: planOnPostgres } = await import('../store/postgres/inspection.ts');
    const rest = ['take a backup of PostgreSQL before: the upgrade makes no copy'];
    return { ...(await planOnPostgres(place)), database: place.url, copy: undefined, rest };
  }
  const { estimatedS: estimatedSeconds, ...plan } = planUpgrade(dataDir);
  const { copy, neededBytes, freeBytes, isInUse } = plan;
  const room = freeBytes < neededBytes ? 'NOT ENOUGH: make room first' : 'enough';
  const rest = [
    `copy from before: ${copy}`,
    `disk: ${megabytes(neededBytes)} needed, ${megabytes(freeBytes)} free: ${room}`,
    `time: about ${estimatedSeconds} s without service`,
    ...(isInUse ? ['a server or another command uses the database: stop it first'] : []),
  ];
  return { ...plan, estimatedSeconds, rest };
}

/** `artseal licenses` */
export const licenses: Command = {
  usage: 'licenses',
  summary: 'print the licenses of third-party software',
  details: ['In a checkout and in the npm package, most of them are in the folders of node_modules.'],
  run: async (_, { print }) => {
    const ofPackages = isSea()
      ? readPackaged(licencesFile).toString()
      : 'They are in the folder of each package in node_modules. The API reference also contains:\n';
    print(`${ofPackages}\n${readPackaged(scalarLicencesFile)}`);
  },
};
