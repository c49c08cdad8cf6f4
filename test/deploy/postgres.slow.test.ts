import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { chmodSync, cpSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { type TestContext, test } from 'node:test';
import pg from 'pg';
import { parse } from 'yaml';
import { unknownSettings } from '../../src/config/table.ts';
import { projectFolder } from '../support/artseal-command.ts';
import { eventually } from '../support/eventually.ts';
import { skipUnlessUnshared } from '../support/namespaces.ts';
import { postgresBinaries, skipUnlessPostgres } from '../support/postgres.ts';
import { artwork } from '../support/samples.ts';
import { send } from '../support/signed-request.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { serveWatched, startProgram } from '../support/watched-command.ts';

/** The part of a service that this test reads. */
interface Service {
  readonly environment: Readonly<Record<string, string>>;
  /** SOURCE:PATH, where SOURCE is a file beside the compose file or the name of a volume. */
  readonly volumes: readonly string[];
}

interface Compose {
  readonly services: {
    readonly artseal: Service;
    readonly postgres: Service & {
      readonly command: readonly string[];
      readonly healthcheck: { readonly test: readonly string[] };
    };
  };
  readonly secrets: { readonly password: { readonly file: string } };
}

const deployed = join(projectFolder, 'deploy', 'postgres');
const { services, secrets }: Compose = parse(readFileSync(join(deployed, 'compose.yaml'), 'utf8'));

const sourcesOf = ({ volumes }: Service): (readonly [path: string, source: string])[] =>
  volumes.map((volume) => volume.split(':')).map(([source = '', path = '']) => [path, source]);

/** A text in which the paths of a service's container are those of its volumes and secrets in a folder. */
function outside(service: Service, folder: string, text: string): string {
  const sources = [...sourcesOf(service), ['/run/secrets/password', secrets.password.file] as const];
  return sources.reduce((text, [path, source]) => text.replaceAll(path, join(folder, source)), text);
}

/** A network of its own with loopback, in which PostgreSQL's user starts the words that follow. */
const ownNetwork = [
  ...['--net', 'sh', '-ec'],
  'ip link set lo up; exec setpriv --reuid=postgres --regid=postgres --clear-groups --pdeathsig=KILL "$@"',
  'sh',
];

/** Does what the image does at its first start: $1 is the script in /docker-entrypoint-initdb.d, the others are options of the server. */
const firstStart = `
script=$1
shift
initdb --username=postgres --no-sync
pg_ctl --wait --options="$* -c listen_addresses=''" start
psql --set=ON_ERROR_STOP=1 --username=postgres --no-password --no-psqlrc --dbname=postgres --file="$script"
pg_ctl --wait stop
exec postgres "$@"`;

/** Starts PostgreSQL on files that are copied into a folder, and waits until its service is healthy. */
async function startPostgres(t: TestContext, folder: string, password: string) {
  const ofContainer = (text: string) => outside(services.postgres, folder, text);
  const data = ofContainer('/var/lib/postgresql');
  const socket = ofContainer('/var/run/postgresql');
  const script = ofContainer('/docker-entrypoint-initdb.d/database.sql');
  spawnSync('install', ['--directory', '--owner=postgres', data, socket]);
  const env = {
    PATH: [postgresBinaries(), process.env.PATH].join(delimiter),
    PGDATA: data,
    PGHOST: socket,
    POSTGRES_PASSWORD: password,
  };
  const [, ...options] = services.postgres.command.map(ofContainer);
  const words = [...ownNetwork, 'sh', '-ec', firstStart, 'sh', script, ...options, '-k', socket];
  const postgres = startProgram(t, 'unshare', words, { env, cwd: '/' });
  const run = (words: readonly string[]) =>
    spawnSync('nsenter', [`--net=/proc/${postgres.child.pid}/ns/net`, ...words], { env, encoding: 'utf8' });
  await eventually('PostgreSQL is healthy', 60_000, async () => {
    assert.equal(postgres.child.exitCode, null, postgres.stderr());
    return run(services.postgres.healthcheck.test.slice(1)).status === 0;
  });
  const stop = async () => {
    postgres.child.kill('SIGQUIT');
    assert.equal(await postgres.end(), 0);
  };
  return { socket, run, stop };
}

const skip = skipUnlessPostgres() || skipUnlessUnshared([...ownNetwork, 'true'], 'ip', 'nsenter', 'setpriv');
const timeout = 120_000;

test('the compose file names settings and files that exist', () => {
  assert.deepEqual(unknownSettings(services.artseal.environment), []);
  const files = sourcesOf(services.postgres).filter(([, source]) => source.startsWith('./'));
  assert.equal(files.length, 2);
  for (const [, file] of files) assert.ok(existsSync(join(deployed, file)), file);
});

test('its first start makes a database that artseal alone opens, with its password', {
  skip,
  timeout,
}, async (t) => {
  const folder = temporaryFolder(t);
  chmodSync(folder, 0o755);
  cpSync(deployed, folder, { recursive: true });
  const password = `it's "one" \\word`;
  writeFileSync(join(folder, secrets.password.file), `${password}\n`, { mode: 0o400 });
  const postgres = await startPostgres(t, folder, password);

  const { artseal } = services;
  const settings = Object.entries(artseal.environment).map(([name, text]) => ({
    [name]: outside(artseal, folder, text),
  }));
  const dataDir = outside(artseal, folder, '/data');
  const service = await serveWatched(t, Object.assign({ ARTSEAL_DATA_DIR: dataDir }, ...settings));
  const platform = JSON.parse(readFileSync(join(dataDir, 'sandbox-credentials.json'), 'utf8'));
  const filing = { target: '/api/v1/filing', body: JSON.stringify(artwork) };
  assert.equal((await send(service.publicUrl, platform, filing)).status, 200);
  assert.equal(await service.stop(), 0);

  const assertRefused = async (user: string, database: string, given: string, why: RegExp) => {
    const client = new pg.Client({ host: postgres.socket, user, database, password: given });
    await assert.rejects(client.connect(), why);
  };
  await assertRefused('artseal', 'artseal', 'wrong', /password authentication failed/);
  await assertRefused('artseal', 'postgres', password, /no pg_hba\.conf entry/);
  await assertRefused('postgres', 'artseal', password, /Peer authentication failed/);
  assert.match(
    postgres.run(['psql', 'postgres://artseal@127.0.0.1/artseal']).stderr,
    /no pg_hba\.conf entry/,
  );
  await postgres.stop();
});
