import { readConfig, readDataDir, settings } from '../config/config.ts';
import { faultOf } from '../config/settings.ts';
import { missingOrigin, upgradeStore } from '../operations/registry.ts';
import { megabytes } from '../store/sqlite/durable-files.ts';
import { planUpgrade, type UpgradePlan } from '../store/sqlite/upgrade.ts';
import { type Command, exitCodes, UsageError } from './command.ts';

const flags = ['check', 'without-copy'] as const;

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
    if (flags.filter(words.has).length > 1) throw new UsageError('takes one flag at a time');
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
    return exitCodes.done;
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
