import { parseArgs } from 'node:util';
import { createDatabase } from '../test/support/postgres.ts';
import { type ShapeName, shapeNames } from './shapes.ts';
import { type SimulationReport, simulate } from './simulate.ts';

/** The seeds to run, one after the other, and the options of each run. */
interface Plan {
  readonly seeds: readonly string[];
  readonly orders: number;
  readonly shape: ShapeName | undefined;
  readonly isOnPostgres: boolean;
  readonly instances: number;
}

const defaults = { orders: 500, runs: 1, instances: 1 } as const;
const seedsMax = 1_000_000_000;

const print = (text: string) => process.stdout.write(`${text}\n`);

/** Parses the command line. Throws if a flag or a value is not valid. */
function readPlan(args: readonly string[]): Plan {
  const options = {
    seed: { type: 'string' },
    orders: { type: 'string' },
    runs: { type: 'string' },
    shape: { type: 'string' },
    postgres: { type: 'boolean' },
    instances: { type: 'string' },
  } as const;
  const { values } = parseArgs({ args: [...args], options });
  const integer = (name: 'seed' | keyof typeof defaults, fallback: number) => {
    const number = Number(values[name] ?? fallback);
    if (!Number.isInteger(number) || number < 1)
      throw new Error(`--${name} must be an integer of at least 1.`);
    return number;
  };
  const first = integer('seed', 1 + Math.floor(Math.random() * seedsMax));
  const seeds = Array.from({ length: integer('runs', defaults.runs) }, (_, index) => String(first + index));
  const shape = shapeNames.find((name) => name === values.shape);
  if (values.shape !== shape) throw new Error(`--shape must be one of ${shapeNames.join(', ')}.`);
  const isOnPostgres = values.postgres === true;
  const instances = integer('instances', defaults.instances);
  if (instances > 1 && !isOnPostgres) throw new Error('--instances needs --postgres.');
  return { seeds, orders: integer('orders', defaults.orders), shape, isOnPostgres, instances };
}

const countsOf = (names: readonly string[]): Record<string, number> =>
  Object.fromEntries([...Map.groupBy(names, (name) => name)].map(([name, of]) => [name, of.length]));

/** Returns the metrics of a run as text. */
function metrics({ shape, tally, books, simulatedMs, digest }: SimulationReport, tookMs: number): string {
  const list = (counts: Record<string, number>) =>
    Object.entries(counts)
      .map(([name, count]) => `${name} ${count}`)
      .join(', ');
  const orders = countsOf(books.orders.map(({ state }) => state));
  const kills = tally.under('kill ');
  const killed = Object.values(kills).reduce((sum, count) => sum + count, 0);
  return [
    `  provider: ${shape}`,
    `  orders: ${books.orders.length} (${list(orders)})`,
    `  after the release: ${list(countsOf(books.orders.flatMap((order) => order.afterPayout)))}`,
    `  calls: ${tally.of('calls')} (${list(tally.under('answer '))})`,
    `  faults: ${list(tally.under('fault '))}`,
    `  kills of the service: ${killed} (${list(kills)})`,
    `  stops of the service: ${tally.of('stops')}; starts: ${tally.of('starts')}; changes of the leader: ${tally.of('leaders')}`,
    `  kills of the provider: ${tally.of('provider kills')}`,
    `  wall clock jumps: ${tally.of('wall clock jumps')}; decisions: ${list(tally.under('decision '))}`,
    `  log: ${list(tally.under('log '))}`,
    `  time: ${(simulatedMs / 1000).toFixed(0)} s simulated in ${(tookMs / 1000).toFixed(1)} s; ${digest}`,
  ].join('\n');
}

const { seeds, orders, shape, isOnPostgres, instances } = readPlan(process.argv.slice(2));
for (const seed of seeds) {
  print(`seed ${seed}, ${orders} orders`);
  const startedMs = performance.now();
  try {
    const database = isOnPostgres ? await createDatabase({ after: () => {} }) : undefined;
    print(
      metrics(await simulate({ seed, orders, shape, database, instances }), performance.now() - startedMs),
    );
  } catch (error) {
    print(error instanceof Error ? error.message : String(error));
    process.exitCode = 1;
    break;
  }
}
