import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import {
  allSettings,
  type Config,
  clientVariables,
  faultsForServing,
  readConfig,
  readServingConfig,
  unknownSettings,
} from '../../src/config/config.ts';
import { providers } from '../../src/config/payment-providers.ts';
import { ConfigError } from '../../src/config/settings.ts';
import { loopback } from '../../src/lib/networks.ts';
import type { ProviderKind, Setting } from '../../src/payments/provider.ts';
import { simulated } from '../../src/payments/simulated/settings.ts';
import { naming } from '../support/config-error.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const hex = '0123456789abcdef'.repeat(4);
const otherHex = 'fedcba9876543210'.repeat(4);

/** The configuration without the environment that it was read from. */
function settingsOf(env: NodeJS.ProcessEnv) {
  const { variables, ...config } = readConfig(env);
  assert.equal(variables, env);
  return config;
}

describe('without any setting', () => {
  test('a deployment is a sandbox that only this machine reaches', () => {
    assert.deepEqual(settingsOf({}), {
      environment: 'sandbox',
      publicAddress: { host: '127.0.0.1', port: 8080 },
      publicTls: undefined,
      publicUrl: 'http://127.0.0.1:8080',
      internalAddress: { host: '127.0.0.1', port: 8081 },
      internalTls: undefined,
      trustedProxies: [],
      metricsAddress: { host: '127.0.0.1', port: 9464 },
      dataDir: './data',
      database: undefined,
      timeZone: 'UTC',
      currency: 'CNY',
      masterKeys: { ownFile: join('data', 'master-key') },
      logLevel: 'info',
      logFormat: 'auto',
      drainDelayS: 0,
      buyerDeadlineMs: 3_600_000,
      backups: { folder: undefined, everyMs: 86_400_000, keep: 7 },
      logOrigin: undefined,
      logWitnesses: undefined,
      logTimeStamps: undefined,
      webhooks: { networks: loopback, plainLoopback: true, proxy: undefined, authorities: undefined },
      hasAccessForm: false,
      mail: undefined,
      provider: simulated,
      providerSettings: {},
      namedFiles: [],
      publicFiles: [],
    });
  });

  test('an empty variable counts as unset', () => {
    const variables = allSettings.map(({ variable }) => [variable, '']);
    assert.deepEqual(settingsOf(Object.fromEntries(variables)), settingsOf({}));
  });

  test('the help shows each default', () => {
    const shown = allSettings.map(({ variable, fallback }) => [variable, fallback]);
    assert.deepEqual(settingsOf(Object.fromEntries(shown)), settingsOf({}));
  });
});

describe('a valid value is accepted', () => {
  const row = (variable: string, value: string, expected: Partial<Config>) =>
    [variable, value, expected] as const;
  const taken = [
    row('ARTSEAL_PUBLIC_ADDR', '[::1]:80', {
      ...{ publicAddress: { host: '::1', port: 80 }, publicUrl: 'http://[::1]:80' },
    }),
    row('ARTSEAL_PUBLIC_ADDR', 'localhost:65535', {
      ...{ publicAddress: { host: 'localhost', port: 65_535 }, publicUrl: 'http://localhost:65535' },
    }),
    row('ARTSEAL_INTERNAL_ADDR', '[::1]:0', { internalAddress: { host: '::1', port: 0 } }),
    row('ARTSEAL_INTERNAL_ADDR', 'unix:/run/a/b.sock', { internalAddress: { path: '/run/a/b.sock' } }),
    row('ARTSEAL_TRUSTED_PROXIES', '127.0.0.1, 10.0.0.0/8,::1,FD00::/8, ::ffff:192.0.2.0/120,', {
      trustedProxies: [
        { family: 'ipv4', address: '127.0.0.1', bits: 32 },
        { family: 'ipv4', address: '10.0.0.0', bits: 8 },
        { family: 'ipv6', address: '::1', bits: 128 },
        { family: 'ipv6', address: 'fd00::', bits: 8 },
        { family: 'ipv4', address: '192.0.2.0', bits: 24 },
      ],
    }),
    row('ARTSEAL_METRICS_ADDR', '0.0.0.0:9100', { metricsAddress: { host: '0.0.0.0', port: 9_100 } }),
    row('ARTSEAL_METRICS_ADDR', 'off', { metricsAddress: undefined }),
    row('ARTSEAL_DATA_DIR', '/var/lib/art seal', { dataDir: '/var/lib/art seal' }),
    row('ARTSEAL_TIME_ZONE', 'Asia/Shanghai', { timeZone: 'Asia/Shanghai' }),
    row('ARTSEAL_TIME_ZONE', 'Etc/GMT+5', { timeZone: 'Etc/GMT+5' }),
    row('ARTSEAL_CURRENCY', 'EUR', { currency: 'EUR' }),
    row('ARTSEAL_DRAIN_DELAY', '60', { drainDelayS: 60 }),
    row('ARTSEAL_ACCESS_FORM', 'yes', { hasAccessForm: true }),
    row('ARTSEAL_BUYER_DEADLINE', '1m', { buyerDeadlineMs: 60_000 }),
    row('ARTSEAL_BUYER_DEADLINE', '24h', { buyerDeadlineMs: 86_400_000 }),
    row('ARTSEAL_BACKUP_EVERY', '60s', { backups: { folder: undefined, everyMs: 60_000, keep: 7 } }),
    row('ARTSEAL_BACKUP_EVERY', '20d', { backups: { folder: undefined, everyMs: 1_728_000_000, keep: 7 } }),
    row('ARTSEAL_BACKUP_KEEP', '1', { backups: { folder: undefined, everyMs: 86_400_000, keep: 1 } }),
    row('ARTSEAL_BACKUP_DIR', '/b', { backups: { folder: '/b', everyMs: 86_400_000, keep: 7 } }),
    ...(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const).map((logLevel) =>
      row('ARTSEAL_LOG_LEVEL', logLevel, { logLevel }),
    ),
    ...(['auto', 'json', 'text'] as const).map((logFormat) =>
      row('ARTSEAL_LOG_FORMAT', logFormat, { logFormat }),
    ),
  ];
  for (const [variable, value, expected] of taken) {
    test(`${variable}=${value}`, () => {
      const config = settingsOf({ [variable]: value });
      const rest = {
        ...(expected.dataDir !== undefined && { masterKeys: config.masterKeys }),
        ...(expected.publicAddress !== undefined && { publicUrl: `http://${value}` }),
      };
      assert.deepEqual(config, { ...settingsOf({}), ...expected, ...rest });
    });
  }
});

describe('another value is rejected, with the name of the variable', () => {
  const wrongAddresses = '8080|:8080|localhost|localhost:|localhost:65536|localhost:-1|localhost:http|::1';
  const rejected: Readonly<Record<string, string>> = {
    ARTSEAL_BACKUP_EVERY: '0|24|59s|1441h|21d|-1d|1.5h|24 h|1w|1H',
    ARTSEAL_BACKUP_KEEP: '0|1001|-1|1.5|7 |all|00000007',
    ARTSEAL_ENVIRONMENT: 'Sandbox|staging|sandbox | ',
    ARTSEAL_TIME_ZONE: 'Mars/Olympus|local|+08:00|2026-01-01T00:00[Asia/Shanghai]| UTC',
    ARTSEAL_CURRENCY: 'cny|CN|CNYX|¥|C1Y|CNY\n',
    ARTSEAL_PAYMENT_PROVIDER: 'bank|Simulated|Stripe|simulated,stripe',
    ARTSEAL_LOG_LEVEL: 'loud|INFO|30',
    ARTSEAL_BUYER_DEADLINE: '59s|25h|0|-1h|1',
    ARTSEAL_ACCESS_FORM: 'on|Yes|1|true',
    ARTSEAL_MAIL_FROM: 'registry|a@b|Registry <a@b.example>|a@b.example\\nBcc: c@d.example|a@@b.example',
    ARTSEAL_DRAIN_DELAY: '61|-1|1.5|5s|1e1| 5|١',
    ARTSEAL_PUBLIC_ADDR: `${wrongAddresses}|unix:/run/artseal/public.sock`,
    ARTSEAL_INTERNAL_ADDR:
      `${wrongAddresses}|unix:|unix:artseal.sock|unix:/run/a b|/run/artseal.sock|` +
      `unix:/${'x'.repeat(103)}`,
    ARTSEAL_METRICS_ADDR: wrongAddresses,
    ARTSEAL_TRUSTED_PROXIES:
      'proxy|10.0.0.0/33|::/129|10.0.0|10.0.0.0/|/8|fe80::1%eth0|127.0.0.1 ::1|10.0.0.0/8/8',
    ARTSEAL_WEBHOOK_PROXY:
      'socks5://proxy:1080|proxy.internal:3128|http://proxy/path|http://proxy/?a=b|http://proxy/#a|' +
      'http://proxy:0/|http://ann:s3cret%ff@proxy/|ann:s3cret@proxy|http://',
    ARTSEAL_WEBHOOK_NETWORKS: '10.20.0.0/33|hooks.internal|10.20.0.0-10.20.0.9',
    ARTSEAL_TLOG_WITNESSES_REQUIRED: '-1|1.5|all|17|1 |1',
    ARTSEAL_TLOG_TSA_URL: 'stamp.example|ftp://stamp.example',
    ARTSEAL_TLOG_TSA_EVERY: '59s|21d',
    ARTSEAL_TLOG_REFUSE_ROLLED_BACK: 'true|1|Yes',
  };
  for (const [variable, values] of Object.entries(rejected)) {
    for (const value of values.split('|')) {
      test(`${variable}=${JSON.stringify(value)}`, () => {
        assert.throws(
          () => readConfig({ [variable]: value }),
          (error) => naming(variable)(error) && !String(error).includes('s3cret'),
        );
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

  test('are read from the variable or from a file, and rejected from both at once', (t) => {
    const ring = [`next:${otherHex}`, `main:${hex}`];
    const inVariable = { ARTSEAL_MASTER_KEY: ring.join(',') };
    const inFile = { ARTSEAL_MASTER_KEY_FILE: join(temporaryFolder(t), 'keys') };
    writeFileSync(inFile.ARTSEAL_MASTER_KEY_FILE, ring.join('\n'));
    for (const env of [inVariable, inFile]) assert.deepEqual(keysOf(env), ring);
    assert.throws(() => readConfig({ ...inVariable, ...inFile }), naming('ARTSEAL_MASTER_KEY'));
  });

  test('are in a file of the data folder of a sandbox without the setting', () => {
    const { masterKeys } = readConfig({ ARTSEAL_DATA_DIR: '/srv/artseal' });
    assert.deepEqual(masterKeys, { ownFile: join('/srv/artseal', 'master-key') });
  });

  test('are rejected if they are wrong, or in a file that is empty, a folder or missing, and never shown', (t) => {
    const folder = temporaryFolder(t);
    const [wrong, empty] = [join(folder, 'wrong'), join(folder, 'empty')];
    writeFileSync(wrong, `${hex}00`);
    writeFileSync(empty, '');
    const files = [wrong, empty, folder, join(folder, 'none')];
    const cases = files.map((file) => ['ARTSEAL_MASTER_KEY_FILE', file] as const);
    for (const [variable, value] of [...cases, ['ARTSEAL_MASTER_KEY', `${hex}00`] as const])
      assert.throws(
        () => readConfig({ [variable]: value }),
        ({ message }: Error) => message.startsWith(`${variable} `) && !message.includes(hex.slice(0, 8)),
      );
  });
});

describe('certificates', () => {
  const at = (path: string) => ({
    ARTSEAL_PUBLIC_TLS_CERT: `${path}/cert`,
    ARTSEAL_PUBLIC_TLS_KEY: `${path}/key`,
    ARTSEAL_INTERNAL_TLS_CERT: `${path}/internal/cert`,
    ARTSEAL_INTERNAL_TLS_KEY: `${path}/internal/key`,
    ARTSEAL_INTERNAL_TLS_CLIENT_CA: `${path}/internal/ca`,
  });

  test('are paths of trusted files, which only a server reads', () => {
    const { publicTls, internalTls, namedFiles } = readConfig(at('/nowhere'));
    assert.deepEqual(publicTls, { certificate: '/nowhere/cert', key: '/nowhere/key', clientCa: undefined });
    const internal = '/nowhere/internal';
    assert.deepEqual(internalTls, {
      certificate: `${internal}/cert`,
      key: `${internal}/key`,
      clientCa: `${internal}/ca`,
    });
    assert.deepEqual(namedFiles, Object.values(at('/nowhere')));
  });

  test('need a key, a key needs a certificate, and client authorities need both', () => {
    for (const listener of ['PUBLIC', 'INTERNAL']) {
      const [certificate, key] = [`ARTSEAL_${listener}_TLS_CERT`, `ARTSEAL_${listener}_TLS_KEY`];
      assert.throws(() => readConfig({ [certificate]: '/x' }), naming(key));
      assert.throws(() => readConfig({ [key]: '/x' }), naming(certificate));
    }
    const clientCa = { ARTSEAL_INTERNAL_TLS_CLIENT_CA: '/x' };
    assert.throws(() => readConfig(clientCa), naming('ARTSEAL_INTERNAL_TLS_CERT'));
  });

  test('are rejected on a Unix socket', () => {
    const env = { ...at('/x'), ARTSEAL_INTERNAL_ADDR: 'unix:/run/artseal.sock' };
    assert.throws(() => readConfig(env), naming('ARTSEAL_INTERNAL_TLS_CERT'));
  });

  test('that cannot be read are faults of a server, reported for both listeners at once', () => {
    const [one, other, ...more] = faultsForServing(readConfig(at('/nowhere')));
    assert.match(one ?? '', /^ARTSEAL_PUBLIC_TLS_CERT cannot be used: \/nowhere\/cert does not exist/);
    assert.match(other ?? '', /^ARTSEAL_INTERNAL_TLS_CERT cannot be used: .* does not exist/);
    assert.deepEqual(more, []);
  });
});

describe('production', () => {
  const production = { ARTSEAL_ENVIRONMENT: 'production' };

  test('is rejected without a master key of the operator', () => {
    assert.throws(() => readConfig(production), naming('ARTSEAL_MASTER_KEY_FILE'));
    assert.throws(() => readConfig(production), naming('ARTSEAL_MASTER_KEY '));
  });

  test('is served with a provider that moves money, and a sandbox with any; keys are issued for each', () => {
    const config = readConfig({ ...production, ARTSEAL_MASTER_KEY: hex });
    const fault = /^ARTSEAL_PAYMENT_PROVIDER must .* and simulated is none\.$/;
    for (const provider of providers) {
      assert.deepEqual(faultsForServing({ environment: 'sandbox', provider }), []);
      const faults = faultsForServing({ ...config, provider });
      assert.match(faults.join(), provider.movesMoney ? /^$/ : fault, provider.name);
    }
  });
});

test('a production is served if the name of its log does not mark it as that of a sandbox', () => {
  const of = (environment: 'production' | 'sandbox', logOrigin: string) =>
    faultsForServing({ environment, logOrigin }).join();
  assert.match(
    of('production', 'artseal.invalid/log'),
    /^ARTSEAL_TLOG_ORIGIN must not begin with artseal\.invalid\/ /,
  );
  assert.equal(of('sandbox', 'artseal.invalid/log'), '');
  assert.equal(of('production', 'artseal.invalid.example/log'), '');
});

describe('the settings of the providers', () => {
  const settingsOf = ({ settings }: ProviderKind) => Object.values<Setting>(settings);

  test('start with the name of the provider and are unique', () => {
    for (const provider of providers) {
      for (const { variable } of settingsOf(provider)) {
        assert.ok(variable.startsWith(`ARTSEAL_${provider.name.toUpperCase()}_`), variable);
      }
    }
    const names = [
      ...providers.map(({ name }) => name),
      ...allSettings.map(({ variable }) => variable),
      ...Object.values(clientVariables),
    ];
    assert.deepEqual(names, [...new Set(names)]);
  });

  test('are documented in the README of their folder', () => {
    const read = (path: string) => readFileSync(join(import.meta.dirname, '..', '..', path), 'utf8');
    for (const provider of providers.filter(({ movesMoney }) => movesMoney)) {
      const manual = read(`src/payments/${provider.name}/README.md`);
      for (const { variable } of settingsOf(provider)) {
        assert.ok(manual.includes(`\n| \`${variable}\` | `), variable);
      }
    }
  });

  test('are not read while another provider is set', () => {
    const config = readConfig({ ARTSEAL_STRIPE_API_KEY: 'x' });
    assert.deepEqual([config.provider, config.providerSettings], [simulated, {}]);
  });
});

test('a secret is not repeated in a fault', () => {
  const secret = 'not-to-be\nrepeated';
  const secrets = allSettings.filter((setting) => setting.secret);
  assert.ok(secrets.length > providers.length);
  for (const { name } of providers) {
    const env = Object.fromEntries(secrets.map(({ variable }) => [variable, secret]));
    assert.throws(
      () => readConfig({ ...env, ARTSEAL_PAYMENT_PROVIDER: name }),
      ({ message }: Error) => message.includes('ARTSEAL_MASTER_KEY ') && !/not-to-be|repeated/.test(message),
    );
  }
});

test('each file is read once, since it may be a pipe', (t) => {
  const folder = temporaryFolder(t);
  const pipe = (name: string, text: string): string => {
    const path = join(folder, name);
    execFileSync('mkfifo', [path]);
    // The pipe is removed as soon as a reader opens it, so nothing can read it again.
    const script = 'exec 3> "$FILE"; rm "$FILE"; printf %s "$TEXT" >&3';
    const writer = spawn('sh', ['-c', script], { env: { ...process.env, TEXT: text, FILE: path } });
    t.after(() => writer.kill('SIGKILL'));
    return path;
  };
  const config = readServingConfig({
    ARTSEAL_MASTER_KEY_FILE: pipe('keys', `main:${hex}`),
    ARTSEAL_PAYMENT_PROVIDER: 'stripe',
    ARTSEAL_STRIPE_API_KEY: 'sk_test_51Abc',
    ARTSEAL_STRIPE_WEBHOOK_SECRET: 'whsec_Abc',
  });
  assert.deepEqual(config.namedFiles, [join(folder, 'keys')]);
});

describe('all faults are reported at once', () => {
  const faultsOf = (read: () => unknown): readonly string[] => {
    try {
      read();
    } catch (error) {
      assert.ok(error instanceof ConfigError, String(error));
      assert.equal(error.message, error.faults.join('\n'));
      return error.faults.map((fault) => fault.split(' ')[0] ?? '');
    }
    return [];
  };

  test('of every setting, in the order of the settings', () => {
    const variables = allSettings.map(({ variable }) => variable);
    const env = Object.fromEntries(variables.map((variable) => [variable, '/nowhere/ at all']));
    const ofProviders = providers.flatMap(({ settings }) => Object.values<Setting>(settings));
    // Any text names a folder; certificates and a password are read later, and the settings of a provider that is not set
    // never.
    const other = /^ARTSEAL_(DATA_DIR|MASTER_KEY|(DATABASE|SMTP)_\w+_FILE|\w+_TLS_\w+)$/;
    assert.deepEqual(
      faultsOf(() => readConfig({ ...env, ARTSEAL_MASTER_KEY: '' })),
      variables.filter((name) => !other.test(name) && !ofProviders.some(({ variable }) => variable === name)),
    );
  });

  test('of a production server without a real provider', () => {
    const env = { ARTSEAL_ENVIRONMENT: 'production', ARTSEAL_LOG_LEVEL: 'loud' };
    assert.deepEqual(
      faultsOf(() => readServingConfig(env)),
      ['ARTSEAL_MASTER_KEY_FILE', 'ARTSEAL_LOG_LEVEL', 'ARTSEAL_PAYMENT_PROVIDER'],
    );
    assert.deepEqual(readServingConfig({}), readConfig({}));
  });
});

test('unknown settings look like settings and variables of clients, but are neither', () => {
  const unknown = ['ARTSEAL_', 'ARTSEAL_DATADIR', 'ARTSEAL_LOG'];
  const known = [...allSettings.map(({ variable }) => variable), 'ARTSEAL_URL', 'ARTSEAL_API_KEY'];
  const names = [...unknown, ...known, 'artseal_data_dir', 'OTHER'];
  assert.deepEqual(unknownSettings(Object.fromEntries(names.map((name) => [name, 'x']))), unknown);
});

const webhooksOf = (env: Record<string, string>) => readConfig(env).webhooks;

test('by default only a sandbox that listens on loopback sends webhooks to loopback', () => {
  const production = {
    ARTSEAL_ENVIRONMENT: 'production',
    ARTSEAL_MASTER_KEY: `main:${'ab'.repeat(32)}`,
    ARTSEAL_TLOG_ORIGIN: 'log.example/artseal',
  };
  const named = { ARTSEAL_WEBHOOK_NETWORKS: '10.20.0.0/16' };
  const found = (env: Record<string, string>) => {
    const { networks, plainLoopback } = webhooksOf(env);
    return [networks.map(({ address }) => address), plainLoopback];
  };
  assert.deepEqual(found({}), [['127.0.0.0', '::1'], true]);
  assert.deepEqual(found(named), [['10.20.0.0'], true]);
  for (const ARTSEAL_PUBLIC_ADDR of ['0.0.0.0:8080', 'artseal.example:8080'])
    assert.deepEqual(found({ ARTSEAL_PUBLIC_ADDR }), [[], false]);
  assert.deepEqual(found({ ARTSEAL_WEBHOOK_PROXY: 'http://proxy.internal:3128' }), [[], false]);
  assert.deepEqual(found(production), [[], false]);
  assert.deepEqual(found({ ...production, ARTSEAL_WEBHOOK_NETWORKS: '127.0.0.1' }), [['127.0.0.1'], false]);
});

test('a mail server needs a sender, a user with a password, and the address of the service', () => {
  const env = { ARTSEAL_SMTP_URL: 'smtps://ann%40x@mail.example', ARTSEAL_MAIL_FROM: 'registry@a.example' };
  const whole = { ...env, ARTSEAL_SMTP_PASSWORD_FILE: '/etc/password' };
  assert.deepEqual(readConfig(whole).mail, {
    ...{ url: new URL(env.ARTSEAL_SMTP_URL), passwordFile: '/etc/password', from: 'registry@a.example' },
  });
  const withoutUser = { ...env, ARTSEAL_SMTP_URL: 'smtp://127.0.0.1:25' };
  assert.equal(readConfig(withoutUser).mail?.passwordFile, undefined);
  for (const url of [
    'mail.example',
    'http://mail.example',
    'smtp://',
    'smtp://a/b',
    'smtp://a?b',
    'smtp://%ff@a',
  ])
    assert.throws(() => readConfig({ ...whole, ARTSEAL_SMTP_URL: url }), naming('ARTSEAL_SMTP_URL'), url);
  const production = {
    ...{ ARTSEAL_ENVIRONMENT: 'production', ARTSEAL_MASTER_KEY: `main:${'ab'.repeat(32)}` },
    ARTSEAL_TLOG_ORIGIN: 'log.example/artseal',
  };
  for (const [wrong, variable, rule] of [
    [
      { ARTSEAL_MAIL_FROM: 'registry@a.example' },
      'ARTSEAL_SMTP_URL',
      'is required if ARTSEAL_MAIL_FROM is set',
    ],
    [
      { ...withoutUser, ARTSEAL_MAIL_FROM: '' },
      'ARTSEAL_MAIL_FROM',
      'is required if ARTSEAL_SMTP_URL is set',
    ],
    [env, 'ARTSEAL_SMTP_PASSWORD_FILE', 'and a user in ARTSEAL_SMTP_URL must both be set, or neither'],
    [
      { ...whole, ...withoutUser },
      'ARTSEAL_SMTP_PASSWORD_FILE',
      'and a user in ARTSEAL_SMTP_URL must both be set',
    ],
    [
      { ...env, ARTSEAL_SMTP_URL: 'smtp://ann:geheim@mail.example' },
      'ARTSEAL_SMTP_URL',
      'must not contain a password',
    ],
    [{ ...withoutUser, ...production }, 'ARTSEAL_PUBLIC_URL', 'is required if ARTSEAL_SMTP_URL is set'],
  ] as const)
    assert.throws(
      () => readConfig(wrong),
      (error: Error) => {
        assert.doesNotMatch(error.message, /geheim/);
        return error instanceof ConfigError && error.message.startsWith(`${variable} ${rule}`);
      },
      `${variable} ${rule}`,
    );
});

test('a proxy has an address, and may have a user and a password', () => {
  for (const text of ['http://proxy.internal:3128', 'https://ann:s%3Acret@[fd00::1]', 'http://10.0.0.1/'])
    assert.deepEqual(webhooksOf({ ARTSEAL_WEBHOOK_PROXY: text }).proxy, new URL(text));
});
