import assert from 'node:assert/strict';
import { once } from 'node:events';
import {
  chmodSync,
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import Sqlite from 'better-sqlite3';
import { createSqliteStore } from '../../src/store/sqlite/engine.ts';
import { artsealInShell } from '../support/artseal-command.ts';
import { type IssuedPlatform, issueInto } from '../support/issued.ts';
import { send } from '../support/signed-request.ts';
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
/** A start that fails does so at once; one that has not failed by now hangs. */
const limitMs = 60_000;

const serve = (t: TestContext, env: Record<string, string>): Promise<BoundedResult> =>
  runBounded(t, ['serve'], { ARTSEAL_DATA_DIR: join(temporaryFolder(t), 'data'), ...env }, limitMs);

/** An address at which something else listens. */
async function takenAddress(t: TestContext): Promise<string> {
  const server = createServer().listen(0, '127.0.0.1');
  t.after(() => server.close());
  await once(server, 'listening');
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** The file of a database that holds a key, closed. */
async function usedDatabase(t: TestContext): Promise<{ dataDir: string; file: string }> {
  const dataDir = temporaryFolder(t);
  await issueInto(dataDir, 1);
  return { dataDir, file: join(dataDir, 'artseal.db') };
}

describe('a start that cannot listen says so and ends', { concurrency: 4, timeout: 300_000 }, () => {
  for (const variable of ['ARTSEAL_PUBLIC_ADDR', 'ARTSEAL_INTERNAL_ADDR', 'ARTSEAL_METRICS_ADDR']) {
    test(`${variable} is taken`, async (t) => {
      const address = await takenAddress(t);
      const env = { ARTSEAL_DATA_DIR: join(temporaryFolder(t), 'data') };
      const result = await serve(t, { ...env, [variable]: address });
      assertOneLine(result, failed, new RegExp(address), new RegExp(variable));
      const next = await serveWatched(t, env);
      assert.match(next.stdout(), /A new sandbox/, 'what the failed start made serves the next one');
      assert.equal(await next.stop(), 0);
    });
  }

  test('an address is not one of this machine', async (t) => {
    const result = await serve(t, { ARTSEAL_INTERNAL_ADDR: '203.0.113.9:0' });
    assertOneLine(result, failed, /203\.0\.113\.9/, /ARTSEAL_INTERNAL_ADDR/);
  });

  test('an address is malformed', async (t) => {
    const result = await serve(t, { ARTSEAL_PUBLIC_ADDR: 'localhost' });
    assertOneLine(result, setUpWrong, /ARTSEAL_PUBLIC_ADDR/, /localhost/);
  });

  test('both addresses are the same', async (t) => {
    const address = '127.0.0.1:8080';
    const dataDir = join(temporaryFolder(t), 'data');
    const env = {
      ARTSEAL_DATA_DIR: dataDir,
      ARTSEAL_PUBLIC_ADDR: address,
      ARTSEAL_INTERNAL_ADDR: address,
    };
    const message = /ARTSEAL_PUBLIC_ADDR and ARTSEAL_INTERNAL_ADDR must differ/;
    assertOneLine(await serve(t, env), setUpWrong, message);
    assert.equal(existsSync(dataDir), false, 'nothing was made');
  });
});

describe('a data folder that cannot be used is named', { concurrency: 4, timeout: 300_000 }, () => {
  const underAFile = (t: TestContext) => {
    const file = join(temporaryFolder(t), 'file');
    writeFileSync(file, '');
    return file;
  };

  test('it is a file', async (t) => {
    const result = await serve(t, { ARTSEAL_DATA_DIR: underAFile(t) });
    assertOneLine(result, failed, /ARTSEAL_DATA_DIR must name .* or none\.\n$/);
  });

  test('it would be in a file', async (t) => {
    const env = { ARTSEAL_DATA_DIR: join(underAFile(t), 'data') };
    assertOneLine(await serve(t, env), failed, /ARTSEAL_DATA_DIR/);
    assertOneLine(await runBounded(t, ['key', 'list'], env, limitMs), failed, /ARTSEAL_DATA_DIR/);
  });

  const noProc = statSync('/proc/self', { throwIfNoEntry: false }) === undefined;
  test('it cannot be made', { skip: noProc }, async (t) => {
    const result = await serve(t, { ARTSEAL_DATA_DIR: '/proc/artseal/data' });
    assertOneLine(result, failed, /ARTSEAL_DATA_DIR/);
  });

  test('nothing can be written into it', { skip: noProc }, async (t) => {
    assertOneLine(await serve(t, { ARTSEAL_DATA_DIR: '/proc' }), failed, /ARTSEAL_DATA_DIR/);
  });

  test('the credentials of the sandbox cannot be written into it', async (t) => {
    const dataDir = temporaryFolder(t);
    mkdirSync(join(dataDir, 'sandbox-credentials.json.new'), { mode: 0o700 });
    assertOneLine(await serve(t, { ARTSEAL_DATA_DIR: dataDir }), failed, /sandbox-credentials\.json/);
  });
});

describe('a database that cannot be used is named and left as it is', {
  concurrency: 4,
  timeout: 300_000,
}, () => {
  test('it belongs to production', async (t) => {
    const dataDir = temporaryFolder(t);
    await createSqliteStore({ dataDir, environment: 'production', currency: 'CNY', opening: 'NEW' }).close();
    for (const words of [['serve'], ['key', 'list']]) {
      const result = await runBounded(t, words, { ARTSEAL_DATA_DIR: dataDir }, limitMs);
      assertOneLine(result, failed, /artseal\.db/, /production/, /ARTSEAL_ENVIRONMENT/);
    }
  });

  test('it is no database', async (t) => {
    const dataDir = temporaryFolder(t);
    const content = 'this is no database '.repeat(500);
    writeFileSync(join(dataDir, 'artseal.db'), content);
    assertOneLine(await serve(t, { ARTSEAL_DATA_DIR: dataDir }), failed, /artseal\.db|ARTSEAL_DATA_DIR/);
    assert.equal(readFileSync(join(dataDir, 'artseal.db'), 'utf8'), content);
  });

  test('it is a folder', async (t) => {
    const dataDir = temporaryFolder(t);
    mkdirSync(join(dataDir, 'artseal.db'));
    assertOneLine(await serve(t, { ARTSEAL_DATA_DIR: dataDir }), failed, /artseal\.db|ARTSEAL_DATA_DIR/);
  });

  test('its pages are damaged', async (t) => {
    const { dataDir, file } = await usedDatabase(t);
    const descriptor = openSync(file, 'r+');
    // After the header of the file: the first page has the schema.
    writeSync(descriptor, Buffer.alloc(3_996, 0xa5), 0, 3_996, 100);
    closeSync(descriptor);
    assertOneLine(await serve(t, { ARTSEAL_DATA_DIR: dataDir }), failed, /artseal\.db|ARTSEAL_DATA_DIR/);
  });

  test('a newer artseal made it', async (t) => {
    const { dataDir, file } = await usedDatabase(t);
    const client = new Sqlite(file);
    client.pragma('user_version = 99');
    client.close();
    const result = await serve(t, { ARTSEAL_DATA_DIR: dataDir });
    assertOneLine(result, failed, /artseal\.db/, /newer/, /99/);
  });
});

test('a second service on the same folder is refused, and the first one goes on', {
  timeout: 300_000,
}, async (t) => {
  const dataDir = temporaryFolder(t);
  const { platforms } = await issueInto(dataDir, 1);
  const [platform] = platforms as [IssuedPlatform];
  const first = await serveWatched(t, { ARTSEAL_DATA_DIR: dataDir });
  assertOneLine(await serve(t, { ARTSEAL_DATA_DIR: dataDir }), failed, /artseal|ARTSEAL_DATA_DIR/);
  const answer = await send(first.publicUrl, platform, { target: '/api/v1/provenance/x' });
  assert.equal(answer.json.code, 'FILING_NOT_FOUND');
  assert.equal(await first.stop('SIGKILL'), null);
  const again = await serveWatched(t, { ARTSEAL_DATA_DIR: dataDir });
  assert.equal(await again.stop(), 0);
});

describe('a setting that cannot be used is named', { concurrency: 4, timeout: 300_000 }, () => {
  test('production without any, and all that it lacks at once', async (t) => {
    const { code, stdout, stderr } = await serve(t, { ARTSEAL_ENVIRONMENT: 'production' });
    assert.deepEqual([code, stdout], [setUpWrong, '']);
    assert.match(stderr, /^artseal: ARTSEAL_MASTER_KEY_FILE .*\nartseal: ARTSEAL_PAYMENT_PROVIDER .*\n$/);
  });

  test('a malformed master key, which is not repeated in the message', async (t) => {
    const result = await serve(t, { ARTSEAL_MASTER_KEY: `${hexKey}ff` });
    assertOneLine(result, setUpWrong, /ARTSEAL_MASTER_KEY/);
    assert.equal(result.stderr.includes('0123456789'), false);
  });
});

describe('a master key that does not fit is refused', { concurrency: 4, timeout: 300_000 }, () => {
  for (const [what, words, name] of [
    ['a start with another key of the same name', ['serve'], 'main'],
    ['a start with a key of another name', ['serve'], 'other'],
    ['issuing under another key', ['key', 'create', '--name', 'next', '--tier', 'TRIAL'], 'main'],
  ] as const) {
    test(what, async (t) => {
      const { dataDir } = await usedDatabase(t);
      const env = { ARTSEAL_DATA_DIR: dataDir, ARTSEAL_MASTER_KEY: `${name}:${otherHexKey}` };
      const toDo = /: set ARTSEAL_MASTER_KEY_FILE to the file with the key main of this database\.\n$/;
      assertOneLine(await runBounded(t, words, env, limitMs), failed, toDo);
    });
  }

  test('the file of the sandbox is lost', async (t) => {
    const { dataDir } = await usedDatabase(t);
    const file = join(dataDir, 'master-key');
    const kept = readFileSync(file, 'utf8');
    rmSync(file);
    const env = { ARTSEAL_DATA_DIR: dataDir };
    assertOneLine(await serve(t, env), failed, /master key|master-key|ARTSEAL_MASTER_KEY/);
    writeFileSync(file, kept);
    assert.equal(await (await serveWatched(t, env)).stop(), 0, 'the file brought back helps');
  });

  for (const [what, content] of [
    ['empty', ''],
    ['cut off', 'main:0123'],
  ] as const) {
    test(`the file of the sandbox is ${what}`, async (t) => {
      const { dataDir } = await usedDatabase(t);
      writeFileSync(join(dataDir, 'master-key'), content);
      const result = await serve(t, { ARTSEAL_DATA_DIR: dataDir });
      assertOneLine(result, failed, /master-key|ARTSEAL_MASTER_KEY/);
      assert.equal(readFileSync(join(dataDir, 'master-key'), 'utf8'), content);
    });
  }

  test('but a new key before the old one seals, and the old one opens what it sealed', async (t) => {
    const dataDir = temporaryFolder(t);
    const { platforms } = await issueInto(dataDir, 1);
    const old = readFileSync(join(dataDir, 'master-key'), 'utf8').trim();
    const ring = `next:${hexKey},${old}`;
    const service = await serveWatched(t, { ARTSEAL_DATA_DIR: dataDir, ARTSEAL_MASTER_KEY: ring });
    const target = '/api/v1/provenance/AS-2026-000001';
    for (const platform of platforms) {
      assert.equal((await send(service.publicUrl, platform, { target })).json.code, 'FILING_NOT_FOUND');
    }
  });
});

describe('what other users of the machine may change is refused', {
  concurrency: 4,
  timeout: 300_000,
}, () => {
  const exposed = (folder: string, name: string, mode = 0o622): string => {
    const file = join(folder, name);
    chmodSync(file, mode);
    return file;
  };

  for (const words of [['serve'], ['key', 'list']]) {
    test(`artseal ${words.join(' ')}: the data folder and its files`, async (t) => {
      const { dataDir } = await usedDatabase(t);
      writeFileSync(join(dataDir, 'sandbox-credentials.json'), '{}');
      const made = [
        ...['artseal.db-wal', 'artseal.db-shm', 'artseal.db-journal', 'serving.lock', 'serving.lock-journal'],
        ...['serving.json', 'log-verified', 'simulated-provider.db', 'simulated-provider.db-wal'],
      ];
      for (const name of made) writeFileSync(join(dataDir, name), '');
      const files = ['artseal.db', 'master-key', 'sandbox-credentials.json', ...made].map((name) =>
        exposed(dataDir, name),
      );
      // Its owner must be able to open it: without that right, only root reaches the files.
      const folder = exposed(dataDir, '.', 0o722);
      const result = await runBounded(t, words, { ARTSEAL_DATA_DIR: dataDir }, limitMs);
      assertOneLine(result, setUpWrong, /mode 0722/, /mode 0622/, /chmod go-w/);
      for (const path of [folder, ...files])
        assert.ok(result.stderr.includes(` '${path}'`), `${path}: ${result.stderr}`);
    });
  }

  test('the file of master keys that the settings name', async (t) => {
    const folder = temporaryFolder(t);
    writeFileSync(join(folder, 'keys'), `main:${hexKey}`);
    const env = {
      ARTSEAL_MASTER_KEY_FILE: exposed(folder, 'keys'),
    };
    const result = await serve(t, env);
    assertOneLine(result, setUpWrong, /keys \(mode 0622\)/, /chmod go-w/);
  });

  test('what they may only read is warned of', async (t) => {
    const { dataDir, file } = await usedDatabase(t);
    chmodSync(dataDir, 0o755);
    chmodSync(file, 0o644);
    const service = await serveWatched(t, { ARTSEAL_DATA_DIR: dataDir });
    assert.equal(await service.stop(), 0);
    const warnings = service
      .stderr()
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line))
      .filter(({ level }) => level === 40);
    assert.deepEqual(
      warnings.map(({ path, mode }) => [path, mode]),
      [
        [dataDir, '0755'],
        // SQLite gives these the mode of the database.
        ...['', '-wal', '-shm'].map((suffix) => [`${file}${suffix}`, '0644']),
      ],
    );
  });
});

test('output that nobody reads is no reason for a stack trace', { timeout: 300_000 }, async (t) => {
  const dataDir = temporaryFolder(t);
  await issueInto(dataDir, 2);
  const { stderr } = await runShell(t, `${artsealInShell} key list | true`, { ARTSEAL_DATA_DIR: dataDir });
  assert.doesNotMatch(stderr, /\bat \S+|EPIPE/);
});
