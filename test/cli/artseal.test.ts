import assert from 'node:assert/strict';
import { globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { actionsOf, nameOf, partsOf, printable, readWords } from '../../src/cli/command.ts';
import { loadTasks } from '../../src/cli/commands.ts';
import { helpFor } from '../../src/cli/help.ts';
import { allSettings } from '../../src/config/config.ts';
import { sandboxCredentialsFile } from '../../src/config/sandbox-credentials.ts';
import { openRaw } from '../store/raw-database.ts';
import { artsealWith, runHere } from '../support/artseal.ts';
import { isOnline } from '../support/connections.ts';
import { freeAddress } from '../support/free-address.ts';
import { registryWithPlatform } from '../support/issued.ts';
import { noteKey } from '../support/note-keys.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { runCommand } from '../support/watched-command.ts';

const credentials = { ARTSEAL_API_KEY: 'ak_sandbox_1', ARTSEAL_API_SECRET: 'sk_sandbox_1' };

/** Runs `artseal` on a folder that cannot be used unless `env` names another: a wrong command line never opens it. */
const artseal = (words: readonly string[], env: Record<string, string> = {}) =>
  runHere(words, { ARTSEAL_DATA_DIR: '/dev/null/none', ...env });

const vkey = noteKey('log.example').vkey;
const quoting = '(a value with spaces needs quotes)';
const decisions = '--look-again, --accept, --return, --stop, --close, --end';
const target = 'a TARGET that begins with one /, such as /api/v1/filing';
const keyActions = 'one of create, list, rotate, suspend, resume, revoke';

/** Wrong command lines by command: the words that follow it, and the error that follows its name. */
const careless: Readonly<Record<string, readonly (readonly [words: string, error: string])[]>> = {
  serve: [['now', `takes no 'now' ${quoting}`]],
  key: [
    ['', `needs ${keyActions}`],
    ['constructor', `needs ${keyActions}, not 'constructor'`],
  ],
  'key create': [
    ['', 'needs --name NAME and needs --tier TRIAL|STANDARD|ENTERPRISE'],
    ['--name Gallery One --tier TRIAL', `takes no 'One' ${quoting}`],
    [
      '--name --tier TRIAL',
      `needs NAME after --name and takes no 'TRIAL' ${quoting} and needs --tier TRIAL|STANDARD|ENTERPRISE`,
    ],
    ['--name= --tier TRIAL', 'needs NAME after --name'],
    ['--name next --tier GOLD', "--tier must be TRIAL or STANDARD or ENTERPRISE, not 'GOLD'"],
    ['--name a --name b --tier TRIAL', 'takes --name once'],
    ['--name a --tier TRIAL --colour', 'takes no --colour'],
    // An empty shell variable must neither take the quota away nor end the old key at once.
    ['--name a --tier ENTERPRISE --monthly-quota=', 'needs N|unlimited after --monthly-quota'],
  ],
  'key rotate': [['key_1 --overlap=', 'needs SECONDS after --overlap']],
  'key list': [['--json=yes', 'takes --json without a value']],
  'platform set': [['gallery', 'needs --tier, --monthly-quota or --filing-cap']],
  'platform usage': [['--csv --json', 'takes one of --csv, --json']],
  'escrow resolve': [
    ['ES-1 --accept', 'needs --reason TEXT (the audit log keeps it)'],
    ['ES-1 --reason seen', `needs one of ${decisions}`],
    ['ES-1 --accept --return --reason seen', `takes only one of ${decisions}`],
    ['ES-1 --end FROZEN --reason seen', "--end must be RELEASED or REFUNDED or CLOSED, not 'FROZEN'"],
    ['ES-1 --end CLOSED --reason seen', 'needs --evidence FILE with --end'],
    ['ES-1 --accept --evidence x --reason seen', 'takes --evidence FILE only with --end'],
  ],
  events: [
    ['--after 1 --since 1h', 'takes one of --since, --after'],
    ['--limit many', `--limit must be a whole number from 1 to ${Number.MAX_SAFE_INTEGER}, not 'many'`],
  ],
  'evidence rotate-key': [
    ['--overlap 367d', "--overlap must be a period such as 90m, 12h or 7d, from 0s to 366d, not '367d'"],
  ],
  'webhooks redeliver': [
    ['wh_1', 'needs either --sequence or --since'],
    ['wh_1 --since 1h --sequence 1', 'needs either --sequence or --since'],
  ],
  backup: [
    ['', 'needs FILE with a . or / in its name, or one of verify, rotate'],
    ['verfy', "needs FILE with a . or / in its name, or one of verify, rotate, not 'verfy'"],
    ['-', 'needs a FILE on a disk, not standard output'],
  ],
  restore: [['b.tar --into x --numbers-after 7', "needs --numbers-after AS-<year>-<6 digits>, not '7'"]],
  'database restored': [
    ['--taken-at 2999-01-01T00:00:00Z', 'takes no --taken-at in the future, 2999-01-01T00:00:00Z'],
  ],
  upgrade: [['--check --without-copy', 'takes one flag at a time']],
  call: [
    ['GET /a {}', 'takes no JSON with GET, which has no body'],
    ['/api/v1/filing POST', `needs ${target}, not 'POST'`],
    ['GET //127.0.0.1:1/api/v1/filing', `needs ${target}, not '//127.0.0.1:1/api/v1/filing'`],
    ['GET /filing/齐', "needs the TARGET as clients send it: /filing/%E9%BD%90, not '/filing/齐'"],
    ['GET /a/../b#top', "needs the TARGET as clients send it: /b, not '/a/../b#top'"],
  ],
  verify: [
    [`b.json --key ${vkey.slice(0, -4)}`, `cannot use --key ${vkey.slice(0, -4)}: `],
    ['b.json --key \n', 'cannot use --key : '],
    [
      `b.json --key ${vkey} --pin pin`,
      'needs --log with --pin: only the log can prove that it continues the pin',
    ],
  ],
  'log audit': [
    [`--key ${vkey}`, 'needs an URL'],
    [`ftp://a --key ${vkey}`, 'needs URL: the http:// or https:// address of a log, or a folder '],
    [`https://me@log.example --key ${vkey}`, 'needs URL to be only the address of a log'],
    [`http://a --key ${vkey} --stamped bundle.json`, 'needs --stamped and --tsa-ca together'],
    [`http://a --key ${vkey} --number 7`, "takes --number as in AS-2026-000001, not '7'"],
    [`http://a --key ${vkey} --witnesses-required 1`, 'needs --witness with --witnesses-required'],
  ],
};
for (const [name, cases] of Object.entries(careless)) {
  for (const [words, error] of cases) {
    test(`artseal ${name} ${words}: ${error}`, async () => {
      const line = words === '' ? name : `${name} ${words}`;
      const { code, printed, errors } = await artseal(line.split(' '));
      assert.deepEqual([code, printed, errors.length], [2, [], 1]);
      assert.ok(errors[0]?.startsWith(`artseal: ${name} ${error}`), errors.join());
      assert.ok(errors[0]?.endsWith(`; see artseal ${name.split(' ')[0]} --help`), errors.join());
    });
  }
}

test('an unknown command is named', async () => {
  for (const line of ['nope', 'help nope']) {
    const { code, errors } = await artseal(line.split(' '));
    const message = "artseal: there is no command 'nope'; artseal --help lists them";
    assert.deepEqual([code, errors], [2, [message]]);
  }
});

test('an empty argument counts as missing', async () => {
  const { code, errors } = await artseal(['key', 'revoke', '']);
  assert.deepEqual([code, errors], [2, ['artseal: key revoke needs a KEY_ID; see artseal key --help']]);
});

test('an error names the argument of the command line, and nothing changes', async (t) => {
  const { env, keyId } = await registryWithPlatform(t);
  const next = ['key', 'create', '--name', 'next', '--tier'];
  const quota = '--monthly-quota';
  const quotaRule = `must be unlimited or an integer from 1 to ${Number.MAX_SAFE_INTEGER}`;
  for (const [words, error] of [
    [[...next, 'ENTERPRISE'], `${quota} N|unlimited is required for ENTERPRISE`],
    [[...next, 'TRIAL', quota, '5'], `${quota} is fixed by the tier TRIAL`],
    [[...next, 'ENTERPRISE', quota, '1e3'], `${quota} ${quotaRule}`],
    [
      ['key', 'create', '--name', 'platform-1', '--tier', 'TRIAL'],
      '--name is taken; rotate a key of that caller to issue another',
    ],
    [['token', 'create', '--name', 'platform-1'], '--name is taken by a platform'],
    [['key', 'rotate', keyId, '--overlap', '2592001'], '--overlap must be an integer from 0 to 2592000'],
    [['key', 'revoke', keyId, '--reason', 'x'.repeat(501)], '--reason must have 1 to 500 characters'],
    [
      ['platform', 'set', 'platform-1', '--filing-cap', 'unlimited'],
      '--filing-cap must be an integer from 1 to 999999',
    ],
    [['platform', 'usage', '--month', '2026-13'], '--month must be YYYY-MM'],
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
  const { env } = await registryWithPlatform(t);
  const { code, errors } = await artseal(['key', 'list'], { ...env, ARTSEAL_DATADIR: '/srv/artseal' });
  assert.equal(code, 0);
  assert.deepEqual(errors, [
    'artseal: ARTSEAL_DATADIR is not a setting and has no effect; artseal help settings lists them',
  ]);
});

test('the command reports that a new key is suspended', async (t) => {
  const { artseal, keyId } = await registryWithPlatform(t);
  await artseal.text(`key suspend ${keyId}`);
  await artseal.text('platform suspend platform-1');
  const suspended = /\nThe key is suspended like .*key resume key_\w+ .*\nThe platform is suspended/;
  assert.match(await artseal.text(`key rotate ${keyId}`), suspended);
  const { status, platformStatus } = await artseal.json(`key rotate ${keyId}`);
  assert.deepEqual([status, platformStatus], ['SUSPENDED', 'SUSPENDED']);
});

test('--version prints the version of package.json', async () => {
  const { code, printed } = await artseal(['--version']);
  assert.deepEqual([code, printed], [0, ['artseal 1.0.0-rc.2']]);
});

const tasks = await loadTasks();
const commands = tasks.flatMap((task) => [...task.commands.keys()]);
const actions = tasks.flatMap((task) => [...task.commands.values()]).flatMap(actionsOf);

test('artseal alone names the commands by task on at most 30 lines', async () => {
  const { code, printed, errors } = await artseal([]);
  assert.deepEqual([code, errors], [0, []]);
  assert.ok(printed.length <= 30, printed.join('\n'));
  const named = printed.flatMap((line) => /^ {2}[A-Z].*? {2,}(.*)$/.exec(line)?.[1]?.split(', ') ?? []);
  assert.deepEqual(named.toSorted(), commands.toSorted());
});

test('--help has a line for each command under its task', async () => {
  const { code, printed, errors } = await artseal(['--help']);
  assert.deepEqual([code, errors], [0, []]);
  for (const name of commands) {
    const at = printed.findIndex((line) => line.startsWith(`  ${name} `));
    const task = printed.slice(0, at).findLast((line) => !line.startsWith('  '));
    assert.match(task ?? '', /^[A-Z].*:$/, name);
  }
  assert.match(printed.join('\n'), /artseal --version/);
  for (const words of [['help'], ['-h']]) assert.deepEqual((await artseal(words)).printed, printed);
});

test('help settings has a line for each setting', async () => {
  const { code, printed, errors } = await artseal(['help', 'settings']);
  assert.deepEqual([code, errors], [0, []]);
  assert.deepEqual(
    printed.map((line) => line.split(' ')[0]),
    allSettings.map(({ variable }) => variable),
  );
});

test('common flags are read like those of the usage line, and described once for a command', () => {
  const common = { usage: '[--url URL]', details: ['--url selects another server.'] };
  const run = async () => undefined;
  const action = { usage: 'work begin NAME [--json]', details: [], common, run };
  const words = readWords(action, ['a', '--url', 'http://b']);
  assert.deepEqual([words.text('NAME'), words.text('url')], ['a', 'http://b']);
  const group = { summary: '', details: [], actions: [action, { ...action, usage: 'work end' }] };
  assert.deepEqual(helpFor('work', group).slice(3), [
    'work begin NAME [--json]',
    'work end',
    'Common flags: [--url URL]',
    '    --url selects another server.',
  ]);
});

for (const name of commands) {
  test(`artseal ${name} --help describes it, even if a setting is wrong`, async () => {
    const env = { ARTSEAL_TIME_ZONE: 'nowhere' };
    const { code, printed, errors } = await artseal([name, '--help'], env);
    assert.deepEqual([code, errors], [0, []]);
    assert.match(printed[0] ?? '', new RegExp(`^artseal ${name}\\b`));
    assert.ok(printed.length >= 3, printed.join('\n'));
    for (const words of [
      ['help', name],
      ['help', name, 'action'],
      [name, 'action', '-h'],
    ])
      assert.deepEqual((await artseal(words, env)).printed, printed);
  });
}

/** `artseal call` with these settings must fail. */
const failingCall = (code: number, env: Record<string, string>, expected?: RegExp) =>
  artsealWith({ ARTSEAL_DATA_DIR: '/dev/null/none', ...credentials, ...env }).errors(
    code,
    'call GET /api/v1/filing',
    expected,
  );

test('call says which URL does not respond, and what to do', async () => {
  const free = `http://${await freeAddress()}`;
  for (const [env, url, reason] of [
    [{ ARTSEAL_URL: `${free}/` }, free, 'ECONNREFUSED'],
    [{ ARTSEAL_PUBLIC_ADDR: free.slice(7) }, free, 'ECONNREFUSED'],
    [{ ARTSEAL_URL: 'http://127.0.0.1:22' }, 'http://127.0.0.1:22', 'bad port'],
  ] as const) {
    const advice = 'start it with artseal serve, or set ARTSEAL_URL to the URL of the service';
    assert.equal(await failingCall(1, env), `artseal: ${url} does not respond (${reason}): ${advice}`);
  }
});

test('call gives up on a server that hangs, and names the page about it', async (t) => {
  const { mock } = t.mock.method(globalThis, 'fetch', async () => {
    throw new DOMException('The operation was aborted due to timeout', 'TimeoutError');
  });
  const late =
    /http:\/\/127\.0\.0\.1:1 does not respond within 60 s: see docs\/operate\/incidents\/server-hangs\.md$/;
  await failingCall(1, { ARTSEAL_URL: 'http://127.0.0.1:1' }, late);
  assert.ok(mock.calls[0]?.arguments[1]?.signal instanceof AbortSignal);
});

const urlRule = 'an http or https URL without path and password, such as http://127\\.0\\.0\\.1:8080';
for (const [variable, value, rule] of [
  ...[
    'localhost:8080',
    'artseal',
    'ftp://127.0.0.1',
    'http://127.0.0.1:1/api',
    'http://[',
    'http://a:b@c',
  ].map((wrong) => ['ARTSEAL_URL', wrong, urlRule] as const),
  ['ARTSEAL_PUBLIC_ADDR', '8080:', 'host:port with a port up to 65535, not ".*"'],
] as const)
  test(`call says what ${variable}=${value} must be`, async () => {
    await failingCall(2, { [variable]: value }, new RegExp(`^artseal: ${variable} must be ${rule}\\.$`));
  });

test('a key without its secret is rejected, even beside credentials of a sandbox', async (t) => {
  const dataDir = temporaryFolder(t);
  writeFileSync(sandboxCredentialsFile(dataDir), JSON.stringify({ apiKey: 'ak', apiSecret: 'sk' }));
  for (const [set, missing] of [
    ['ARTSEAL_API_KEY', 'ARTSEAL_API_SECRET'],
    ['ARTSEAL_API_SECRET', 'ARTSEAL_API_KEY'],
  ] as const) {
    const error = await artsealWith({ ARTSEAL_DATA_DIR: dataDir, [set]: 'x' }).errors(2, 'sign GET /a');
    assert.equal(error, `artseal: ${missing} is required if ${set} is set.`);
  }
});

test('all wrong settings of a client are reported at once, in a line each', async () => {
  const { code, errors } = await artseal(['call', 'GET', '/a'], { ARTSEAL_URL: 'artseal' });
  assert.deepEqual([code, errors.length], [2, 2]);
  assert.match(errors[0] ?? '', /^artseal: ARTSEAL_URL must be /);
  const file = '/dev/null/none/sandbox-credentials.json';
  const required = 'ARTSEAL_API_KEY and ARTSEAL_API_SECRET are required';
  assert.equal(errors[1], `artseal: ${required}: ${file} does not exist.`);
});

test('an error is one line', async () => {
  const words = ['call', 'GET', '/api/v1/filing', '--idempotency-key', 'a\nb'];
  const { code, errors } = await artseal(words, { ...credentials, ARTSEAL_URL: 'http://127.0.0.1:1' });
  assert.equal(code, 1);
  assert.match(errors.join('|'), /^artseal: [^|\n]*a b[^|\n]*$/);
});

test('an error names the file that is missing or cannot be used, and what to do', async (t) => {
  const folder = temporaryFolder(t);
  const { env } = await registryWithPlatform(t);
  const none = join(folder, 'none');
  writeFileSync(join(folder, 'file'), '');
  mkdirSync(join(folder, 'data', 'restore.partial'), { recursive: true });
  const masterKeys = { ...env, ARTSEAL_MASTER_KEY_FILE: none };
  const at = (name: string) => ({ ARTSEAL_DATA_DIR: join(folder, name) });
  for (const [words, settings, code, error] of [
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

test('every command takes --json, except the server, health checks, clients of the public API and texts for people', async () => {
  const without = actions.filter((action) => !partsOf(action).some(({ name }) => name === 'json'));
  assert.deepEqual(without.map(nameOf), [
    ...['serve', 'ready', 'database roles', 'demo', 'call', 'sign', 'listen', 'trigger'],
    ...['help', 'completion bash', 'completion zsh', 'completion fish', 'licenses'],
  ]);
});

test('every command that can call a server has a test over every connection', async () => {
  const online = new Set(actions.filter(isOnline).map((action) => nameOf(action).split(' ')[0]));
  const tested = globSync(join(import.meta.dirname, '*.test.ts')).flatMap((file) => {
    const names = /^testEveryConnection\((.*)\);$/m.exec(readFileSync(file, 'utf8'))?.[1] ?? '';
    return [...names.matchAll(/'([a-z-]+)'/g)].map(([, name]) => name);
  });
  assert.deepEqual(tested.toSorted(), [...online].toSorted());
});

test('the choices of usage lines are completed, and no name of a value', async () => {
  const { printed } = await artseal(['completion', 'bash']);
  const choices = Array.from(
    printed.join('\n').matchAll(/ --[a-z-]+'\) next='([^']+)'/g),
    ([, words]) => words,
  );
  assert.deepEqual(
    new Set(choices),
    new Set([
      'DUE SENDING SENT UNKNOWN BOUNCED',
      'TRIAL STANDARD ENTERPRISE',
      'unlimited',
      'none',
      'BUYER SELLER',
      'PUBLIC INTERNAL ADMIN',
      'ENABLED DISABLED',
      'PENDING WAITING DELIVERED FAILED',
    ]),
  );
});

test('characters that control a terminal or reverse text are escaped', () => {
  assert.equal(printable('a\u001b[2Jb\u009bc\rd\u0007'), 'a\\u001b[2Jb\\u009bc\\u000dd\\u0007');
  assert.equal(printable('one\u202etwo\u2066three\u2028four'), 'one\\u202etwo\\u2066three\\u2028four');
});

test('other text stays as it is, with its lines and tabs', () => {
  const text = 'one\ntwo\r\nthree\tGalerie Müller 画廊 גלריה 👩‍🎨';
  assert.equal(printable(text), text);
});

test('the real command escapes an older name that reverses text, and its JSON has the whole name', async (t) => {
  const { env } = await registryWithPlatform(t);
  const name = 'Gallery\u202eyrellaG';
  openRaw(t, env.ARTSEAL_DATA_DIR)
    .prepare('UPDATE caller SET name = ? WHERE name = ?')
    .run(name, 'platform-1');
  const { stdout } = await runCommand(['key', 'list', '--json'], env);
  assert.ok(stdout.includes('Gallery\\u202eyrellaG'), stdout);
  assert.equal(JSON.parse(stdout).caller, name);
});
