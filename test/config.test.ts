import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import {
  type Config,
  ConfigRefused,
  faultsForServing,
  readConfig,
  readServingConfig,
  refuseSimulatedInProduction,
  settings,
  unknownSettings,
} from '../src/config.ts';
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
      namedFiles: [],
      timeZone: 'UTC',
      currency: 'CNY',
      masterKeys: { ownFile: join('data', 'master-key') },
      institution: 'simulated',
      stripe: undefined,
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
    ['ARTSEAL_PAYMENT_INSTITUTION', ['bank', 'Simulated', 'Stripe', 'simulated,stripe']],
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

  test('is not served by the simulated institution, named or by default, but keys are issued for it', () => {
    for (const institution of ['', 'simulated']) {
      const env = { ...production, ARTSEAL_MASTER_KEY: hex, ARTSEAL_PAYMENT_INSTITUTION: institution };
      const config = readConfig(env);
      assert.throws(() => refuseSimulatedInProduction(config), naming('ARTSEAL_PAYMENT_INSTITUTION'));
    }
  });

  test('is served by Stripe, and a sandbox by either', () => {
    refuseSimulatedInProduction({ environment: 'production', institution: 'stripe' });
    refuseSimulatedInProduction({ environment: 'sandbox', institution: 'stripe' });
    refuseSimulatedInProduction({ environment: 'sandbox', institution: 'simulated' });
  });
});

describe('Stripe', () => {
  const customer = { customer: 'cus_A1', paymentMethod: 'pm_card_visa' };
  const parties = { buyers: { '买方 1': customer }, sellers: { seller: 'acct_A1' } };

  /** The settings of a sandbox at Stripe, with the file of parties that is given. */
  function atStripe(t: TestContext, file: unknown = parties) {
    const partiesFile = join(temporaryFolder(t), 'parties.json');
    writeFileSync(partiesFile, typeof file === 'string' ? file : JSON.stringify(file));
    return {
      ARTSEAL_PAYMENT_INSTITUTION: 'stripe',
      ARTSEAL_STRIPE_API_KEY: 'sk_test_51Abc',
      ARTSEAL_STRIPE_WEBHOOK_SECRET: 'whsec_Abc+/=',
      ARTSEAL_STRIPE_PARTIES_FILE: partiesFile,
    };
  }
  const live = {
    ARTSEAL_ENVIRONMENT: 'production',
    ARTSEAL_MASTER_KEY: hex,
    ARTSEAL_STRIPE_API_KEY: 'rk_live_51Abc',
  };

  test('is set up by its settings', (t) => {
    const config = readConfig(atStripe(t));
    assert.equal(config.institution, 'stripe');
    assert.deepEqual(config.stripe, {
      apiKey: 'sk_test_51Abc',
      webhookSecret: 'whsec_Abc+/=',
      url: 'https://api.stripe.com',
      parties: { buyers: new Map([['买方 1', customer]]), sellers: new Map([['seller', 'acct_A1']]) },
    });
    assert.equal(readConfig({ ...atStripe(t), ...live }).stripe?.apiKey, 'rk_live_51Abc');
  });

  test('changes nothing while another institution is set', (t) => {
    const env = { ...atStripe(t), ARTSEAL_PAYMENT_INSTITUTION: 'simulated', ARTSEAL_STRIPE_API_KEY: 'x' };
    assert.equal(readConfig(env).stripe, undefined);
  });

  for (const name of ['API_KEY', 'WEBHOOK_SECRET', 'PARTIES_FILE']) {
    test(`needs ARTSEAL_STRIPE_${name}`, (t) => {
      const variable = `ARTSEAL_STRIPE_${name}`;
      for (const value of [undefined, '']) {
        assert.throws(
          () => readConfig({ ...atStripe(t), [variable]: value }),
          naming(`${variable} is required`),
        );
      }
    });
  }

  test('takes a key of its environment alone, and repeats no secret', (t) => {
    const withoutSecret = (variable: string, secret: string) => (error: unknown) =>
      naming(variable)(error) && !(error as Error).message.includes(secret.slice(-6));
    const refuseKey = (env: NodeJS.ProcessEnv, key: string) => {
      const refused = withoutSecret('ARTSEAL_STRIPE_API_KEY', key);
      assert.throws(() => readConfig({ ...atStripe(t), ...env, ARTSEAL_STRIPE_API_KEY: key }), refused, key);
    };
    for (const key of ['sk_live_51Abc', 'rk_live_51Abc', 'pk_test_51Abc', 'sk_test_a secret']) {
      refuseKey({}, key);
    }
    for (const key of ['sk_test_51Abc', 'rk_test_51Abc', 'sk_live_51Abc\n']) refuseKey(live, key);
    for (const secret of ['secret-of-mine', 'whsec_a b c d e f']) {
      const refused = withoutSecret('ARTSEAL_STRIPE_WEBHOOK_SECRET', secret);
      assert.throws(
        () => readConfig({ ...atStripe(t), ARTSEAL_STRIPE_WEBHOOK_SECRET: secret }),
        refused,
        secret,
      );
    }
  });

  test('is https, but for a stand-in on this machine', (t) => {
    const url = (text: string, env = {}) =>
      readConfig({ ...atStripe(t), ...env, ARTSEAL_STRIPE_URL: text }).stripe?.url;
    for (const text of [
      'https://stripe.example:8443',
      'http://127.0.0.1:12111',
      'http://localhost:1',
      'http://[::1]:1',
    ]) {
      assert.equal(url(text), text);
    }
    assert.equal(url('https://api.stripe.com/', live), 'https://api.stripe.com');
    for (const text of [
      'http://api.stripe.com',
      'http://localhost.example',
      'http://127.0.0.1.example',
      'ftp://127.0.0.1',
      'file:///etc/passwd',
      'api.stripe.com',
      'https://user:secret@api.stripe.com',
      'https://api.stripe.com/v1',
      'https://api.stripe.com/?a',
    ]) {
      assert.throws(() => url(text), naming('ARTSEAL_STRIPE_URL'), text);
    }
    for (const text of ['http://127.0.0.1:1', 'https://stripe.example', 'https://api.stripe.com:8443']) {
      assert.throws(() => url(text, live), naming('ARTSEAL_STRIPE_URL'), text);
    }
  });

  test('is refused with a currency whose minor unit it counts otherwise', (t) => {
    for (const code of ['ISK', 'UGX', 'MGA']) {
      assert.throws(() => readConfig({ ...atStripe(t), ARTSEAL_CURRENCY: code }), naming('ARTSEAL_CURRENCY'));
      assert.equal(readConfig({ ARTSEAL_CURRENCY: code }).currency, code);
    }
  });

  const files: readonly (readonly [string, unknown, RegExp])[] = [
    ['no JSON', '{"buyers', /must be JSON\.$/],
    ['a list', [], /the file must be an object/],
    ['nothing in it', {}, /the file must have the member buyers/],
    ['no sellers', { buyers: {} }, /the file must have the member sellers/],
    ['something else', { ...parties, notes: '' }, /unknown member "notes"; it takes buyers, sellers\.$/],
    ['a list of buyers', { ...parties, buyers: [] }, /buyers must be an object/],
    [
      'a buyer who is a customer alone',
      { ...parties, buyers: { b: 'cus_1' } },
      /buyers\["b"\] must be an object/,
    ],
    [
      'a buyer without a card',
      { ...parties, buyers: { b: { customer: 'cus_1' } } },
      /buyers\["b"\] must have the member paymentMethod/,
    ],
    [
      'a buyer with more',
      { ...parties, buyers: { b: { ...customer, email: '' } } },
      /unknown member "email" in buyers\["b"\]; it takes customer, paymentMethod/,
    ],
    [
      'a customer that is none',
      { ...parties, buyers: { b: { ...customer, customer: 'acct_1' } } },
      /buyers\["b"\]\.customer must be the id of a customer/,
    ],
    [
      'a card that is none',
      { ...parties, buyers: { b: { ...customer, paymentMethod: 7 } } },
      /buyers\["b"\]\.paymentMethod must be the id of a payment method/,
    ],
    [
      'an account that is none',
      { ...parties, sellers: { s: 'cus_1' } },
      /sellers\["s"\] must be the id of a connected account/,
    ],
    ['an empty id', { ...parties, sellers: { '': 'acct_1' } }, /the id of sellers\[""\]/],
    ['an id that is too long', { ...parties, sellers: { ['x'.repeat(129)]: 'acct_1' } }, /the id of sellers/],
  ];
  for (const [what, file, pattern] of files) {
    test(`is refused with a file of parties with ${what}`, (t) => {
      const env = atStripe(t, file);
      assert.throws(() => readConfig(env), naming('ARTSEAL_STRIPE_PARTIES_FILE'));
      assert.throws(() => readConfig(env), pattern);
    });
  }

  test('is refused with a file of parties that is not there', (t) => {
    const env = { ...atStripe(t), ARTSEAL_STRIPE_PARTIES_FILE: join(temporaryFolder(t), 'none') };
    assert.throws(() => readConfig(env), naming('ARTSEAL_STRIPE_PARTIES_FILE'));
  });
});

describe('all faults are told at once', () => {
  const faultsOf = (read: () => unknown): readonly string[] => {
    try {
      read();
    } catch (error) {
      assert.ok(error instanceof ConfigRefused, String(error));
      assert.equal(error.message, error.faults.join('\n'));
      return error.faults.map((fault) => fault.split(' ')[0] ?? '');
    }
    return [];
  };

  test('of every setting, in the order of the settings', () => {
    const wrong = Object.values(settings).map(({ variable }) => [variable, '/nowhere/ at all']);
    const env = { ...Object.fromEntries(wrong), ARTSEAL_MASTER_KEY: '' };
    assert.deepEqual(
      faultsOf(() => readConfig(env)),
      [
        'ARTSEAL_ENVIRONMENT',
        'ARTSEAL_PUBLIC_ADDR',
        'ARTSEAL_INTERNAL_ADDR',
        'ARTSEAL_TIME_ZONE',
        'ARTSEAL_CURRENCY',
        'ARTSEAL_MASTER_KEY_FILE',
        'ARTSEAL_PAYMENT_INSTITUTION',
        'ARTSEAL_LOG_LEVEL',
      ],
    );
  });

  test('of Stripe, with those of what it depends on told once', () => {
    const env = {
      ARTSEAL_ENVIRONMENT: 'staging',
      ARTSEAL_CURRENCY: 'cny',
      ARTSEAL_PAYMENT_INSTITUTION: 'stripe',
      ARTSEAL_STRIPE_API_KEY: 'sk_test_51Abc',
      ARTSEAL_STRIPE_URL: 'ftp://stripe.example',
      ARTSEAL_STRIPE_PARTIES_FILE: '/nowhere/parties.json',
    };
    assert.deepEqual(
      faultsOf(() => readConfig(env)),
      [
        'ARTSEAL_ENVIRONMENT',
        'ARTSEAL_CURRENCY',
        'ARTSEAL_STRIPE_WEBHOOK_SECRET',
        'ARTSEAL_STRIPE_URL',
        'ARTSEAL_STRIPE_PARTIES_FILE',
      ],
    );
  });

  test('also that production needs a real institution, where it is to be served', () => {
    const env = { ARTSEAL_ENVIRONMENT: 'production', ARTSEAL_LOG_LEVEL: 'loud' };
    assert.deepEqual(
      faultsOf(() => readServingConfig(env)),
      ['ARTSEAL_MASTER_KEY_FILE', 'ARTSEAL_PAYMENT_INSTITUTION', 'ARTSEAL_LOG_LEVEL'],
    );
    assert.deepEqual(readServingConfig({}), readConfig({}));
  });

  test('two addresses, which other commands do not need', () => {
    const both = (one: string, other = one) => ({ ARTSEAL_PUBLIC_ADDR: one, ARTSEAL_INTERNAL_ADDR: other });
    const same = both('127.0.0.1:9000');
    const fault = 'ARTSEAL_PUBLIC_ADDR and ARTSEAL_INTERNAL_ADDR must differ.';
    assert.throws(() => readServingConfig(same), { name: 'ConfigRefused', message: fault });
    assert.deepEqual(faultsForServing(readConfig(same)), [fault]);
    for (const env of [both('127.0.0.1:0'), both('127.0.0.1:9000', '127.0.0.2:9000')]) {
      assert.deepEqual(readServingConfig(env), readConfig(env));
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
