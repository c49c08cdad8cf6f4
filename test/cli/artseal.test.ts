import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { allSettings } from '../../src/config/config.ts';
import { sandboxCredentialsFile } from '../../src/config/sandbox-credentials.ts';
import { runHere } from '../support/artseal.ts';
import { issueInto } from '../support/issued.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const credentials = { ARTSEAL_API_KEY: 'ak_sandbox_1', ARTSEAL_API_SECRET: 'sk_sandbox_1' };

/** Runs `artseal` on a folder that cannot be used unless `env` names another: a wrong command line never opens it. */
const artseal = (words: readonly string[], env: Record<string, string> = {}) =>
  runHere(words, { ARTSEAL_DATA_DIR: '/dev/null/none', ...env });

/** A data folder with the platform platform-1, its key, and one token. */
async function registryWithKey(t: TestContext) {
  const env = { ARTSEAL_DATA_DIR: temporaryFolder(t) };
  const { platforms } = await issueInto(env.ARTSEAL_DATA_DIR, 1);
  return { env, keyId: platforms[0]?.keyId ?? assert.fail() };
}

/** Wrong command lines, and how their error begins. */
const careless: readonly (readonly [words: string, error: string])[] = [
  ['nope', "there is no command 'nope'; artseal --help lists them"],
  ['help nope', "there is no command 'nope'; artseal --help lists them"],
  ['serve now', "serve takes no 'now' (a value with spaces needs quotes); see artseal serve --help"],
  ['key', 'key needs one of create, list, rotate, suspend, resume, revoke; see artseal key --help'],
  [
    'key revok key_1',
    "key needs one of create, list, rotate, suspend, resume, revoke, not 'revok'; see artseal key --help",
  ],
  [
    'key constructor',
    "key needs one of create, list, rotate, suspend, resume, revoke, not 'constructor'; see artseal key --help",
  ],
  [
    'key create',
    'key create needs --name NAME and needs --tier TRIAL|STANDARD|ENTERPRISE; see artseal key --help',
  ],
  [
    'key create --name Gallery One --tier TRIAL',
    "key create takes no 'One' (a value with spaces needs quotes); see artseal key --help",
  ],
  ['key create --name --tier TRIAL', 'key create needs NAME after --name'],
  ['key create --name= --tier TRIAL', 'key create needs NAME after --name; see artseal key --help'],
  ['key create --tier TRIAL --name', 'key create needs NAME after --name; see artseal key --help'],
  ['key create --name a --name b --tier TRIAL', 'key create takes --name once; see artseal key --help'],
  ['key create --name a --tier TRIAL --colour', 'key create takes no --colour; see artseal key --help'],
  // An empty shell variable must neither take the quota away nor end the old key at once.
  [
    'key create --name a --tier ENTERPRISE --monthly-quota=',
    'key create needs N|unlimited after --monthly-quota; see artseal key --help',
  ],
  ['key rotate key_1 --overlap=', 'key rotate needs SECONDS after --overlap; see artseal key --help'],
  ['key rotate --overlap 0', 'key rotate needs a KEY_ID; see artseal key --help'],
  ['key list --json=yes', 'key list takes --json without a value; see artseal key --help'],
  ['platform', 'platform needs one of list, show, set, suspend, resume, usage; see artseal platform --help'],
  [
    'platform set gallery',
    'platform set needs --tier, --monthly-quota or --filing-cap; see artseal platform --help',
  ],
  ['platform usage --csv --json', 'platform usage takes one of --csv, --json; see artseal platform --help'],
  [
    'escrow resolve ES-2026-AB12 --accept',
    'escrow resolve needs --reason TEXT (the audit log keeps it); see artseal escrow --help',
  ],
  [
    'escrow resolve ES-2026-AB12 --reason seen',
    'escrow resolve needs one of --look-again, --accept, --return, --stop, --close, --end; see artseal escrow --help',
  ],
  [
    'escrow resolve ES-2026-AB12 --accept --return --reason seen',
    'escrow resolve takes only one of --look-again, --accept, --return, --stop, --close, --end; see artseal escrow --help',
  ],
  ['events --after 1 --since 1h', 'events takes one of --since, --after; see artseal events --help'],
  ['events --limit many', "events takes --limit as a whole number of 1 or more, not 'many'"],
  [
    'webhooks redeliver wh_1',
    'webhooks redeliver needs either --sequence or --since; see artseal webhooks --help',
  ],
  [
    'webhooks redeliver wh_1 --since 1h --sequence 1',
    'webhooks redeliver needs either --sequence or --since',
  ],
  ['sign', 'sign needs a METHOD and needs a TARGET; see artseal sign --help'],
  ['call GET /a {}', 'call takes no JSON with GET, which has no body; see artseal call --help'],
  [
    'call /api/v1/filing POST',
    "call needs a TARGET that begins with one /, such as /api/v1/filing, not 'POST'; see artseal call --help",
  ],
  [
    'call GET //127.0.0.1:1/api/v1/filing',
    "call needs a TARGET that begins with one /, such as /api/v1/filing, not '//127.0.0.1:1/api/v1/filing'",
  ],
  [
    'call GET /api/v1/filing/齐',
    "call needs the TARGET as clients send it: /api/v1/filing/%E9%BD%90, not '/api/v1/filing/齐'; see artseal call --help",
  ],
  [
    'sign GET /api/v1/../v1/filing#top',
    "sign needs the TARGET as clients send it: /api/v1/filing, not '/api/v1/../v1/filing#top'; see artseal sign --help",
  ],
  [
    'sign GET /a',
    'ARTSEAL_API_KEY and ARTSEAL_API_SECRET are required: /dev/null/none/sandbox-credentials.json does not exist.',
  ],
];
for (const [words, error] of careless) {
  test(`artseal ${words}: ${error}`, async () => {
    const { code, printed, errors } = await artseal(words.split(' '));
    assert.deepEqual([code, printed], [2, []]);
    assert.equal(errors.length, 1, errors.join('\n'));
    assert.ok(errors.join('\n').startsWith(`artseal: ${error}`), errors.join('\n'));
  });
}

test('an empty argument counts as missing', async () => {
  const { code, errors } = await artseal(['key', 'revoke', '']);
  assert.deepEqual([code, errors], [2, ['artseal: key revoke needs a KEY_ID; see artseal key --help']]);
});

test('an error names the argument of the command line, and nothing changes', async (t) => {
  const { env, keyId } = await registryWithKey(t);
  const next = ['key', 'create', '--name', 'next', '--tier'];
  const quota = '--monthly-quota';
  const quotaRule = `must be unlimited or an integer from 1 to ${Number.MAX_SAFE_INTEGER}`;
  for (const [words, error] of [
    [[...next, 'ENTERPRISE'], `${quota} N|unlimited is required for ENTERPRISE`],
    [[...next, 'TRIAL', quota, '5'], `${quota} is fixed by the tier TRIAL`],
    [[...next, 'ENTERPRISE', quota, '1e3'], `${quota} ${quotaRule}`],
    [[...next, 'ENTERPRISE', quota, '0'], `${quota} ${quotaRule}`],
    [
      ['key', 'create', '--name', 'platform-1', '--tier', 'TRIAL'],
      '--name is taken; rotate a key of that caller to issue another',
    ],
    [['token', 'create', '--name', 'platform-1'], '--name is taken by a platform'],
    [['key', 'rotate', keyId, '--overlap', '2592001'], '--overlap must be whole seconds from 0 to 2592000'],
    [['key', 'rotate', keyId, '--overlap', 'soon'], '--overlap must be whole seconds from 0 to 2592000'],
    [['key', 'revoke', keyId, '--reason', 'x'.repeat(501)], '--reason must have 1 to 500 characters'],
    [['platform', 'suspend', 'platform-1', '--reason', 'a\nb'], '--reason must have no control characters'],
  ] as const) {
    const { code, errors } = await artseal(words, env);
    assert.deepEqual([code, errors], [1, [`artseal: VALIDATION_FAILED: ${error}`]]);
  }
  for (const [words, error] of [
    [['key', 'revoke', 'key_none'], 'NOT_FOUND: KEY_ID names no key. See artseal key list'],
    [['token', 'revoke', 'tok_none'], 'NOT_FOUND: TOKEN_ID names no token. See artseal token list'],
    [['platform', 'resume', 'Platform-1'], 'NOT_FOUND: NAME names no platform. See artseal platform list'],
    [
      ['escrow', 'resolve', 'ES-1', '--accept', '--reason', 'seen'],
      'ESCROW_NOT_FOUND: ESCROW_ID names no escrow. See artseal escrow list',
    ],
  ] as const) {
    const { code, errors } = await artseal(words, env);
    assert.deepEqual([code, errors], [1, [`artseal: ${error}`]]);
  }
  const keys = (await artseal(['key', 'list', '--json'], env)).printed.map((line) => JSON.parse(line));
  assert.deepEqual(
    keys.map(({ keyId: id, status, expiresAt }) => [id, status, expiresAt]),
    [[keyId, 'ACTIVE', null]],
  );
  assert.equal((await artseal(['token', 'list'], env)).printed.length, 1);
});

test('a misspelt setting is reported, since the operator may mean another folder', async (t) => {
  const { env } = await registryWithKey(t);
  const { code, errors } = await artseal(['key', 'list'], { ...env, ARTSEAL_DATADIR: '/srv/artseal' });
  assert.equal(code, 0);
  assert.deepEqual(errors, [
    'artseal: ARTSEAL_DATADIR is not a setting and has no effect; artseal --help lists the settings',
  ]);
});

test('the command reports that a new key is suspended', async (t) => {
  const { env, keyId } = await registryWithKey(t);
  await artseal(['key', 'suspend', keyId], env);
  await artseal(['platform', 'suspend', 'platform-1'], env);
  const { printed } = await artseal(['key', 'rotate', keyId], env);
  assert.match(
    printed.join('\n'),
    /\nThe key is suspended like .*key resume key_\w+ .*\nThe platform is suspended/,
  );
  const asJson = await artseal(['key', 'rotate', keyId, '--json'], env);
  const { status, platformStatus } = JSON.parse(asJson.printed.join());
  assert.deepEqual([status, platformStatus], ['SUSPENDED', 'SUSPENDED']);
});

test('--version prints the version of package.json', async () => {
  const { code, printed } = await artseal(['--version']);
  assert.deepEqual([code, printed], [0, ['artseal 0.1.0']]);
});

const commands = [
  ...['init', 'serve', 'check', 'ready', 'clock', 'backup', 'restore', 'upgrade', 'platform', 'party', 'key'],
  ...[
    'token',
    'secrets',
    'escrow',
    'retention',
    'audit-log',
    'events',
    'webhooks',
    'evidence',
    'log',
    'verify',
  ],
  ...['sign', 'call', 'demo', 'licenses'],
];

test('--help names --version, every command and every setting', async () => {
  const overview = (await artseal(['--help'])).printed.join('\n');
  assert.match(overview, /artseal --version/);
  for (const name of commands) assert.match(overview, new RegExp(`^ *${name}\\b`, 'm'));
  for (const { variable } of allSettings) assert.ok(overview.includes(variable), variable);
});

for (const name of commands) {
  test(`artseal ${name} --help describes it, even if a setting is wrong`, async () => {
    const env = { ARTSEAL_TIME_ZONE: 'nowhere' };
    const { code, printed, errors } = await artseal([name, '--help'], env);
    assert.deepEqual([code, errors], [0, []]);
    assert.match(printed[0] ?? '', new RegExp(`^artseal ${name}\\b`));
    assert.ok(printed.length >= 3, printed.join('\n'));
    assert.deepEqual((await artseal(['help', name], env)).printed, printed);
  });
}

test('the help of a command shows what each of its actions takes', async () => {
  const { printed } = await artseal(['key', '--help']);
  assert.ok(
    printed.includes('key rotate KEY_ID [--overlap SECONDS] [--reason TEXT] [--json]'),
    printed.join('\n'),
  );
});

test('call says which URL does not respond, and what to do', async () => {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const free = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  await new Promise((resolve) => server.close(resolve));
  for (const [env, url, reason] of [
    [{ ARTSEAL_URL: free }, free, 'ECONNREFUSED'],
    [{ ARTSEAL_URL: `${free}/` }, free, 'ECONNREFUSED'],
    [{ ARTSEAL_PUBLIC_ADDR: free.slice(7) }, free, 'ECONNREFUSED'],
    [{ ARTSEAL_URL: 'http://127.0.0.1:22' }, 'http://127.0.0.1:22', 'bad port'],
  ] as const) {
    const { code, errors } = await artseal(['call', 'GET', '/api/v1/filing'], { ...credentials, ...env });
    assert.equal(code, 1);
    const line = errors.join('\n');
    assert.ok(line.startsWith(`artseal: no response from ${url} (`), line);
    assert.ok(line.includes(reason), line);
    assert.match(line, /start it with artseal serve, or set ARTSEAL_URL to the URL of the service$/);
  }
});

for (const [variable, rule, values] of [
  [
    'ARTSEAL_URL',
    'an http or https URL without path and password, such as http://127\\.0\\.0\\.1:8080',
    ['localhost:8080', 'artseal', 'ftp://127.0.0.1', 'http://127.0.0.1:1/api', 'http://[', 'http://a:b@c'],
  ],
  [
    'ARTSEAL_PUBLIC_ADDR',
    'host:port with a port up to 65535, not ".*"',
    ['8080:', '127.0.0.1:99999', 'a b:1'],
  ],
] as const) {
  for (const value of values) {
    test(`call says what ${variable}=${value} must be`, async () => {
      const env = { ...credentials, [variable]: value };
      const { code, errors } = await artseal(['call', 'GET', '/api/v1/filing'], env);
      assert.equal(code, 2, errors.join());
      assert.match(errors.join('\n'), new RegExp(`^artseal: ${variable} must be ${rule}\\.$`));
    });
  }
}

test('a key without its secret is rejected, even beside credentials of a sandbox', async (t) => {
  const dataDir = temporaryFolder(t);
  writeFileSync(sandboxCredentialsFile(dataDir), JSON.stringify({ apiKey: 'ak', apiSecret: 'sk' }));
  for (const [set, missing] of [
    ['ARTSEAL_API_KEY', 'ARTSEAL_API_SECRET'],
    ['ARTSEAL_API_SECRET', 'ARTSEAL_API_KEY'],
  ] as const) {
    const { code, errors } = await artseal(['sign', 'GET', '/a'], { ARTSEAL_DATA_DIR: dataDir, [set]: 'x' });
    assert.deepEqual([code, errors], [2, [`artseal: ${missing} is required if ${set} is set.`]]);
  }
});

test('all wrong settings of a client are reported at once, in a line each', async () => {
  const { code, errors } = await artseal(['call', 'GET', '/a'], { ARTSEAL_URL: 'artseal' });
  assert.equal(code, 2);
  assert.deepEqual(
    errors.map((line) => line.split(' ').slice(0, 4).join(' ')),
    ['artseal: ARTSEAL_URL must be', 'artseal: ARTSEAL_API_KEY and ARTSEAL_API_SECRET'],
  );
  const half = await artseal(['demo'], { ARTSEAL_PUBLIC_ADDR: '8080:', ARTSEAL_API_KEY: 'ak' });
  assert.equal(half.code, 2);
  assert.deepEqual(half.errors, [
    'artseal: ARTSEAL_PUBLIC_ADDR must be host:port with a port up to 65535, not "8080:".',
    'artseal: ARTSEAL_API_SECRET is required if ARTSEAL_API_KEY is set.',
  ]);
});

test('an error is one line', async () => {
  const words = ['call', 'GET', '/api/v1/filing', '--idempotency-key', 'a\nb'];
  const { code, errors } = await artseal(words, { ...credentials, ARTSEAL_URL: 'http://127.0.0.1:1' });
  assert.equal(code, 1);
  assert.match(errors.join('|'), /^artseal: [^|\n]*a b[^|\n]*$/);
});

test('an unknown tier or role is a wrong command line; the error lists the known ones', async (t) => {
  const { env } = await registryWithKey(t);
  const role = ['--platform', 'platform-1', '--role', 'BROKER', '--id', 'a'];
  for (const [words, error] of [
    [['key', 'create', '--name', 'next', '--tier', 'GOLD'], "--tier TRIAL|STANDARD|ENTERPRISE, not 'GOLD'"],
    [['platform', 'set', 'platform-1', '--tier', 'GOLD'], "--tier TRIAL|STANDARD|ENTERPRISE, not 'GOLD'"],
    [['party', 'remove', ...role], "--role BUYER|SELLER, not 'BROKER'"],
  ] as const) {
    const { code, errors } = await artseal(words, env);
    const name = words.slice(0, 2).join(' ');
    assert.deepEqual(
      [code, errors],
      [2, [`artseal: ${name} takes ${error}; see artseal ${words[0]} --help`]],
    );
  }
});

test('an error names the file that is missing or cannot be used, and what to do', async (t) => {
  const folder = temporaryFolder(t);
  const { env } = await registryWithKey(t);
  const none = join(folder, 'none');
  writeFileSync(join(folder, 'file'), '');
  mkdirSync(join(folder, 'data', 'restore.partial'), { recursive: true });
  const masterKeys = { ...env, ARTSEAL_MASTER_KEY_FILE: none };
  const at = (name: string) => ({ ARTSEAL_DATA_DIR: join(folder, name) });
  for (const [words, settings, code, error] of [
    [['backup', 'verify', none], env, 1, `${none} does not exist: check the path`],
    [['restore', none, '--into', join(folder, 'new')], env, 1, `${none} does not exist: check the path`],
    [['backup', 'rotate', '--into', none, '--keep', '3'], env, 1, `${none} does not exist: check the path`],
    [['party', 'import', none], env, 1, `${none} does not exist: check the path`],
    [
      ['key', 'list'],
      masterKeys,
      2,
      `ARTSEAL_MASTER_KEY_FILE cannot be used: ${none} does not exist: check the path`,
    ],
    [['init'], at('file/data'), 1, `${folder}/file exists already: name another one, or remove it`],
    [
      ['key', 'list'],
      at('data'),
      1,
      `a restore into ${folder}/data did not end, so ${folder}/data/artseal.db is missing: empty the folder, and run artseal restore again`,
    ],
  ] as const) {
    const { code: ended, errors } = await artseal(words, settings);
    assert.equal(ended, code, words.join(' '));
    assert.ok(errors.join('\n').includes(error), errors.join('\n'));
    assert.doesNotMatch(errors.join('\n'), /\bE[A-Z]{4,}\b/);
  }
});

test('a body that cannot be read is named', async (t) => {
  const file = join(temporaryFolder(t), 'none.json');
  const { code, errors } = await artseal(['sign', 'POST', '/a', '--body', file], credentials);
  assert.equal(code, 1);
  assert.ok(
    errors.join('\n').startsWith(`artseal: cannot read --body ${file}: ${file} does not exist`),
    errors.join('\n'),
  );
});
