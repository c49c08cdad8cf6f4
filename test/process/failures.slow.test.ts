import assert from 'node:assert/strict';
import {
  appendFileSync,
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { artsealInShell } from '../support/artseal-command.ts';
import { skipOnPostgres } from '../support/engine.ts';
import { issueInto } from '../support/issued.ts';
import { listenLocally } from '../support/local-server.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import {
  assertOneLine,
  type BoundedResult,
  runBounded,
  runShell,
  serveWatched,
} from '../support/watched-command.ts';

const setUpWrong = 2;
const failed = 1;
const hexKey = '0123456789abcdef'.repeat(4);
const otherHexKey = 'fedcba9876543210'.repeat(4);
/** Far longer than a start that fails, in milliseconds. */
const limitMs = 60_000;
const noProc = statSync('/proc/self', { throwIfNoEntry: false }) === undefined;

const serve = (t: TestContext, env: Record<string, string>): Promise<BoundedResult> =>
  runBounded(t, ['serve'], { ARTSEAL_DATA_DIR: join(temporaryFolder(t), 'data'), ...env }, limitMs);

/** An address at which another program listens. */
const takenAddress = async (t: TestContext) => new URL(await listenLocally(t, createServer(), () => {})).host;

const mkdirWith = (path: string) => mkdirSync(path, { recursive: true, mode: 0o700 });

/** Creates the database with a key. */
async function withDatabase(dataDir: string): Promise<string> {
  mkdirWith(dataDir);
  await issueInto(dataDir, 1);
  return join(dataDir, 'artseal.db');
}

/** Creates a file; its path. */
function fileAt(path: string, content = ''): string {
  mkdirWith(join(path, '..'));
  writeFileSync(path, content);
  return path;
}

/** Gives a path a mode with which others may change it. */
function exposed(path: string, mode = 0o622): string {
  chmodSync(path, mode);
  return path;
}

/** A command that must fail with one line. */
interface Failure {
  /** Prepares the data folder. Returns further settings. */
  readonly prepare: (
    dataDir: string,
    t: TestContext,
  ) => Record<string, string> | Promise<Record<string, string>>;
  /** The commands that fail; `serve` if not given. */
  readonly commands?: readonly (readonly string[])[];
  readonly code?: number;
  readonly message: readonly RegExp[];
  /** Files of the data folder whose content must stay. */
  readonly unchanged?: readonly string[];
  readonly skip?: boolean;
}

const serveAndList = [['serve'], ['key', 'list']] as const;
const taken = (variable: string): Failure => ({
  prepare: async (_, t) => ({ [variable]: await takenAddress(t) }),
  message: [/127\.0\.0\.1:\d+/, new RegExp(variable)],
});
const dataDirOf = (path: (dataDir: string) => string): Failure['prepare'] => {
  return (dataDir) => ({ ARTSEAL_DATA_DIR: path(dataDir) });
};

const failures: Readonly<Record<string, Failure>> = {
  'the public address is taken': taken('ARTSEAL_PUBLIC_ADDR'),
  'the internal address is taken': taken('ARTSEAL_INTERNAL_ADDR'),
  'the address of metrics is taken': taken('ARTSEAL_METRICS_ADDR'),
  'the data folder is a file': {
    prepare: dataDirOf((dataDir) => fileAt(dataDir)),
    message: [/ARTSEAL_DATA_DIR must name a folder that this user can write.*\.\n$/],
  },
  'the data folder cannot be written to': {
    prepare: dataDirOf(() => '/proc'),
    message: [/ARTSEAL_DATA_DIR/],
    skip: noProc,
  },
  'the credentials of the sandbox cannot be written': {
    prepare: (dataDir) => {
      mkdirWith(join(dataDir, 'sandbox-credentials.json.new'));
      return {};
    },
    message: [/sandbox-credentials\.json/],
  },
  'the database is a folder': {
    prepare: (dataDir) => {
      mkdirWith(join(dataDir, 'artseal.db'));
      return {};
    },
    message: [/artseal\.db|ARTSEAL_DATA_DIR/],
  },
  'the master key has another value': {
    prepare: async (dataDir) => {
      await withDatabase(dataDir);
      return { ARTSEAL_MASTER_KEY: `main:${otherHexKey}` };
    },
    commands: [['serve'], ['key', 'create', '--name', 'next', '--tier', 'TRIAL']],
    message: [/: set ARTSEAL_MASTER_KEY_FILE to the file with the key main of this database\.\n$/],
  },
  'the master key of the sandbox is cut off': {
    prepare: async (dataDir) => {
      await withDatabase(dataDir);
      writeFileSync(join(dataDir, 'master-key'), 'main:0123');
      return {};
    },
    message: [/master-key|ARTSEAL_MASTER_KEY/],
    unchanged: ['master-key'],
  },
  'other users may change the file of master keys': {
    prepare: (dataDir) => ({
      ARTSEAL_MASTER_KEY_FILE: exposed(fileAt(join(dataDir, 'keys'), `main:${hexKey}`)),
    }),
    code: setUpWrong,
    message: [/keys \(mode 0622\)/, /chmod go-w/],
  },
};

describe('a command that fails says why in one line:', { concurrency: 4, timeout: 300_000 }, () => {
  for (const [what, failure] of Object.entries(failures)) {
    const { prepare, commands = [['serve']], code = failed, message, unchanged = [], skip } = failure;
    test(what, { skip: skip ?? false }, async (t) => {
      const dataDir = join(temporaryFolder(t), 'data');
      const env = { ARTSEAL_DATA_DIR: dataDir, ...(await prepare(dataDir, t)) };
      const contents = () => unchanged.map((name) => readFileSync(join(dataDir, name), 'utf8'));
      const [existed, before] = [existsSync(dataDir), contents()];
      for (const words of commands) assertOneLine(await runBounded(t, words, env, limitMs), code, ...message);
      assert.deepEqual(contents(), before);
      if (code === setUpWrong) assert.equal(existsSync(dataDir), existed, 'nothing is created');
    });
  }
});

test('a failed start does not hinder the next one', { timeout: 300_000 }, async (t) => {
  const env = { ARTSEAL_DATA_DIR: join(temporaryFolder(t), 'data') };
  assertOneLine(await serve(t, { ...env, ARTSEAL_PUBLIC_ADDR: await takenAddress(t) }), failed);
  const next = await serveWatched(t, env);
  assert.match(next.stdout(), /A new sandbox/);
  assert.equal(await next.stop(), 0);
  const file = join(env.ARTSEAL_DATA_DIR, 'master-key');
  const key = readFileSync(file);
  rmSync(file);
  assertOneLine(await serve(t, env), failed, /master key|master-key|ARTSEAL_MASTER_KEY/);
  writeFileSync(file, key, { mode: 0o600 });
  assert.equal(await (await serveWatched(t, env)).stop(), 0);
});

for (const words of serveAndList) {
  test(`artseal ${words.join(' ')} names all files of the data folder that other users may change`, async (t) => {
    const dataDir = temporaryFolder(t);
    await issueInto(dataDir, 1);
    const others = [
      ...['artseal.db', 'artseal.db-wal', 'artseal.db-shm', 'artseal.db-journal'],
      ...[
        'artseal.lock',
        'artseal.lock-journal',
        'serving.json',
        'log-verified',
        'simulated-provider.db',
        'simulated-provider.db-wal',
      ],
    ];
    for (const name of others) appendFileSync(join(dataDir, name), '');
    writeFileSync(join(dataDir, 'sandbox-credentials.json'), '{}');
    const names = ['master-key', 'sandbox-credentials.json', ...others];
    const files = names.map((name) => exposed(join(dataDir, name)));
    // The owner needs the right to open the folder.
    const folder = exposed(dataDir, 0o722);
    const result = await runBounded(t, words, { ARTSEAL_DATA_DIR: dataDir }, limitMs);
    assertOneLine(result, setUpWrong, /mode 0722/, /mode 0622/, /chmod go-w/);
    for (const path of [folder, ...files])
      assert.ok(result.stderr.includes(` '${path}'`), `${path}: ${result.stderr}`);
  });
}

test('files that other users may read are logged as a warning', {
  skip: skipOnPostgres('the files are those of SQLite'),
}, async (t) => {
  const dataDir = temporaryFolder(t);
  const file = await withDatabase(dataDir);
  chmodSync(dataDir, 0o755);
  chmodSync(file, 0o644);
  const service = await serveWatched(t, { ARTSEAL_DATA_DIR: dataDir });
  assert.equal(await service.stop(), 0);
  const warnings = service.logged().filter(({ level }) => level === 40);
  // SQLite gives its log files the mode of the database.
  const readable = ['', '-wal', '-shm'].map((suffix) => [`${file}${suffix}`, '0644']);
  assert.deepEqual(
    warnings.map(({ path, mode }) => [path, mode]),
    [[dataDir, '0755'], ...readable],
  );
});

test('output without a reader causes no stack trace', { timeout: 300_000 }, async (t) => {
  const dataDir = temporaryFolder(t);
  await issueInto(dataDir, 2);
  const { stderr } = await runShell(t, `${artsealInShell} key list | true`, { ARTSEAL_DATA_DIR: dataDir });
  assert.doesNotMatch(stderr, /\bat \S+|EPIPE/);
});
