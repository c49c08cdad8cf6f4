import { readConfig, readDataDir } from '../config.ts';
import { upgradeStore } from '../registry.ts';
import { megabytes } from '../store/sqlite/durable-files.ts';
import { planUpgrade, type UpgradePlan } from '../store/sqlite/upgrade.ts';
import { type Command, exitCodes } from './command.ts';

/** `artseal upgrade` */
export const upgrade: Command = {
  usage: 'upgrade [--check] [--without-copy]',
  summary: 'bring the database to this version, which serve does as well',
  details: [
    '--check         only says what would happen; exit code 3 if anything is to be done, 0 if not.',
    '--without-copy  makes no copy before, which is the way back: only with a backup elsewhere.',
    'The service that uses the database has to be stopped before.',
  ],
  run: async (words, { env, print }) => {
    const plan = planUpgrade(readDataDir(env));
    const isDue = plan.migrations.length > 0;
    if (words.has('check')) for (const line of described(plan)) print(line);
    if (words.has('check')) return isDue ? exitCodes.due : exitCodes.done;
    const keepsCopy = !words.has('without-copy');
    await upgradeStore(readConfig(env), keepsCopy);
    print(`${plan.database} has schema ${plan.newSchema}`);
    if (isDue && keepsCopy) print(`as it was before, with schema ${plan.schema}: ${plan.copy}`);
    return exitCodes.done;
  },
};

function described(plan: UpgradePlan): string[] {
  const { database, schema, newSchema, migrations, copy, neededBytes, freeBytes, estimatedS, isServed } =
    plan;
  if (migrations.length === 0) return [`${database} has schema ${schema}: nothing to be done`];
  const room = freeBytes < neededBytes ? 'NOT ENOUGH: make room first' : 'enough';
  return [
    `${database} has schema ${schema}; this version has ${newSchema}`,
    ...migrations.map((name) => `  to run: ${name}`),
    `a copy is made before: ${copy}`,
    `disk: ${megabytes(neededBytes)} needed, ${megabytes(freeBytes)} free: ${room}`,
    `time: about ${estimatedS} s, in which nothing is answered`,
    ...(isServed ? ['an artseal serves it: stop that first'] : []),
  ];
}
