import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { type Config, ConfigRefused, readConfig, settings, unknownSettings } from '../src/config.ts';
import { temporaryFolder } from './support/temporary-folder.ts';

const hex = '0123456789abcdef'.repeat(4);
const otherHex = 'fedcba9876543210'.repeat(4);

/** For assert.throws: a refusal that names the variable. */
const naming = (variable: string) => (error: unknown) => {
  assert.ok(error instanceof ConfigRefused, String(error));
  assert.ok(error.message.includes(variable), error.message);
  assert.doesNotMatch(error.message, /\n/);
  return true;
};

describe('without any setting', () => {
  test('it is a sandbox on this machine alone', () => {
    assert.deepEqual(readConfig({}), {
      environment: 'sandbox',
      publicAddress: { host: '127.0.0.1', port: 8080 },
      internalAddress: { host: '127.0.0.1', port: 8081 },
      dataDir: './data',
      timeZone: 'UTC',
      currency: 'CNY',
      masterKeys: { ownFile: join('data', 'master-key') },
      institution: 'simulated',
      logLevel: 'info',
    });
  });

  test('an empty variable is as good as none', () => {
    const variables = Object.values(settings).map(({ variable }) => [variable, '']);
    assert.deepEqual(readConfig(Object.fromEntries(variables)), readConfig({}));
  });

  test('each default is the one that the help shows', () => {
    const shown = Object.values(settings).map(({ variable, fallback }) => [variable, fallback]);
    assert.deepEqual(readConfig(Object.fromEntries(shown)), readConfig({}));
  });
});

describe('a valid value is taken', () => {
  const taken: [string, string, Partial<Config>][] = [
    ['ARTSEAL_ENVIRONMENT', 'sandbox', { environment: 'sandbox' }],
    ['ARTSEAL_PUBLIC_ADDR', '0.0.0.0:80', { publicAddress: { host: '0.0.0.0', port: 80 } }],
    [
      'ARTSEAL_PUBLIC_ADDR',
      'artseal.example:65535',
      { publicAddress: { host: 'artseal.example', port: 65_535 } },
    ],
    ['ARTSEAL_INTERNAL_ADDR', '[::1]:0', { internalAddress: { host: '::1', port: 0 } }],
    ['ARTSEAL_DATA_DIR', '/var/lib/art seal', { dataDir: '/var/lib/art seal' }],
    ['ARTSEAL_TIME_ZONE', 'Asia/Shanghai', { timeZone: 'Asia/Shanghai' }],
    ['ARTSEAL_TIME_ZONE', 'America/Argentina/Buenos_Aires', { timeZone: 'America/Argentina/Buenos_Aires' }],
    ['ARTSEAL_TIME_ZONE', 'Etc/UTC', { timeZone: 'Etc/UTC' }],
    ['ARTSEAL_CURRENCY', 'EUR', { currency: 'EUR' }],
    ['ARTSEAL_PAYMENT_INSTITUTION', 'simulated', { institution: 'simulated' }],
    ...(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const).map(
      (logLevel): [string, string, Partial<Config>] => ['ARTSEAL_LOG_LEVEL', logLevel, { logLevel }],
    ),
  ];
  for (const [variable, value, expected] of taken) {
    test(`${variable}=${value}`, () => {
      const config = readConfig({ [variable]: value });
      const rest = expected.dataDir === undefined ? {} : { masterKeys: config.masterKeys };
      assert.deepEqual(config, { ...readConfig({}), ...expected, ...rest });
    });
  }
});

describe('another value is refused, naming the variable', () => {
  const refused: [string, string[]][] = [
    ['ARTSEAL_ENVIRONMENT', ['Sandbox', 'staging', 'sandbox ', ' ']],
    ['ARTSEAL_TIME_ZONE', ['Mars/Olympus', 'local', '+08:00', '2026-01-01T00:00[Asia/Shanghai]', ' UTC']],
    ['ARTSEAL_CURRENCY', ['cny', 'CN', 'CNYX', '¥', 'C1Y', 'CNY\n']],
    ['ARTSEAL_PAYMENT_INSTITUTION', ['bank', 'Simulated']],
    ['ARTSEAL_LOG_LEVEL', ['loud', 'INFO', '30']],
    ...['ARTSEAL_PUBLIC_ADDR', 'ARTSEAL_INTERNAL_ADDR'].map((variable): [string, string[]] => [
      variable,
      [
        '8080',
        ':8080',
        'localhost',
        'localhost:',
        'localhost:65536',
        'localhost:-1',
        'localhost:http',
        '::1',
      ],
    ]),
  ];
  for (const [variable, values] of refused) {
    for (const value of values) {
      test(`${variable}=${JSON.stringify(value)}`, () => {
        assert.throws(() => readConfig({ [variable]: value }), naming(variable));
      });
    }
  }
});

describe('master keys', () => {
  const keysOf = (env: NodeJS.ProcessEnv): string[] => {
    const { masterKeys } = readConfig(env);
    assert.ok('keys' in masterKeys);
    return masterKeys.keys.map(({ name, key }) => `${name}:${Buffer.from(key).toString('hex')}`);
  };

  test('are read from the variable, the first one sealing', () => {
    assert.deepEqual(keysOf({ ARTSEAL_MASTER_KEY: hex }), [`main:${hex}`]);
    const ring = `next:${otherHex},main:${hex}`;
    assert.deepEqual(keysOf({ ARTSEAL_MASTER_KEY: ring }), ring.split(','));
  });

  test('are read from the file, a line each, with comments', (t) => {
    const file = join(temporaryFolder(t), 'keys');
    writeFileSync(file, `# of 2026\nnext:${otherHex}\n\nmain:${hex} # the old one\n`);
    const expected = [`next:${otherHex}`, `main:${hex}`];
    assert.deepEqual(keysOf({ ARTSEAL_MASTER_KEY_FILE: file }), expected);
  });

  test('are a file of its own in the folder of a sandbox that names none', () => {
    const { masterKeys } = readConfig({ ARTSEAL_DATA_DIR: '/srv/artseal' });
    assert.deepEqual(masterKeys, { ownFile: join('/srv/artseal', 'master-key') });
  });

  for (const text of [
    'secret',
    hex.slice(2),
    hex.toUpperCase(),
    `${hex}00`,
    `Main:${hex}`,
    `a:${hex},a:${otherHex}`,
    ',',
  ]) {
    test(`are refused as ${text.slice(0, 12)}… of ${text.length} characters, which the message does not repeat`, (t) => {
      const file = join(temporaryFolder(t), 'keys');
      writeFileSync(file, text);
      for (const [variable, value] of [
        ['ARTSEAL_MASTER_KEY', text],
        ['ARTSEAL_MASTER_KEY_FILE', file],
      ] as const) {
        assert.throws(() => readConfig({ [variable]: value }), naming(variable));
        assert.throws(
          () => readConfig({ [variable]: value }),
          ({ message }: Error) => !message.includes(hex.slice(0, 8)) && !message.includes('secret'),
        );
      }
    });
  }

  test('are refused in a file that is empty, a folder or not there', (t) => {
    const folder = temporaryFolder(t);
    const empty = join(folder, 'empty');
    writeFileSync(empty, '');
    for (const file of [empty, folder, join(folder, 'none')]) {
      const env = { ARTSEAL_MASTER_KEY_FILE: file };
      assert.throws(() => readConfig(env), naming('ARTSEAL_MASTER_KEY_FILE'));
    }
  });

  test('are refused from two places at once', (t) => {
    const file = join(temporaryFolder(t), 'keys');
    writeFileSync(file, hex);
    const env = { ARTSEAL_MASTER_KEY_FILE: file, ARTSEAL_MASTER_KEY: hex };
    assert.throws(() => readConfig(env), naming('ARTSEAL_MASTER_KEY'));
  });
});

describe('production', () => {
  const production = { ARTSEAL_ENVIRONMENT: 'production' };

  test('is refused without a master key of the operator', () => {
    assert.throws(() => readConfig(production), naming('ARTSEAL_MASTER_KEY_FILE'));
    assert.throws(() => readConfig(production), naming('ARTSEAL_MASTER_KEY '));
  });

  test('is refused with the simulated institution, named or by default', () => {
    for (const institution of ['', 'simulated']) {
      const env = { ...production, ARTSEAL_MASTER_KEY: hex, ARTSEAL_PAYMENT_INSTITUTION: institution };
      assert.throws(() => readConfig(env), naming('ARTSEAL_PAYMENT_INSTITUTION'));
    }
  });
});

describe('unknown settings', () => {
  test('are those that look like settings and are none', () => {
    const env = { ARTSEAL_DATADIR: 'x', ARTSEAL_: '', artseal_data_dir: 'x', OTHER: 'x', ARTSEAL_LOG: 'x' };
    assert.deepEqual(unknownSettings(env).toSorted(), ['ARTSEAL_', 'ARTSEAL_DATADIR', 'ARTSEAL_LOG']);
  });

  test('are neither the settings nor what the client commands read', () => {
    const client = ['ARTSEAL_URL', 'ARTSEAL_API_KEY', 'ARTSEAL_API_SECRET'];
    const known = [...Object.values(settings).map(({ variable }) => variable), ...client];
    assert.deepEqual(unknownSettings(Object.fromEntries(known.map((name) => [name, 'x']))), []);
  });
});
