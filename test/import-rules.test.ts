import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, matchesGlob } from 'node:path';
import { test } from 'node:test';
import { fileScope } from './support/file-scope.ts';
import { temporaryFolder } from './support/temporary-folder.ts';

const root = join(import.meta.dirname, '..');

/** What a file of a part of src/ may import, and what it may not. */
interface Imports {
  readonly allowed: readonly string[];
  readonly refused: readonly string[];
}

const drivers = ['better-sqlite3', 'drizzle-orm', 'drizzle-orm/sqlite-core', 'stripe'];
const connect = ['@connectrpc/connect', '@connectrpc/connect-node', '@bufbuild/protobuf'];
const web = ['node:http', 'node:http2', 'node:net'];

/** By the file that imports; the files that are imported need not be there. */
const parts: Readonly<Record<string, Imports>> = {
  'src/any.ts': {
    allowed: ['./rest/routes.ts', './payment/institutions.ts', 'node:http', 'pino'],
    refused: [
      ...[
        './payment/stripe/settings.ts',
        './verifier/index.ts',
        ...drivers,
        '@connectrpc/connect-node',
        'prom-client',
      ],
      ...['@opentelemetry/api', 'asn1js', 'pkijs'],
    ],
  },
  'src/cli/any.ts': {
    allowed: ['../app.ts', 'node:fs'],
    refused: [
      ...['../payment/simulated/simulator.ts', '../verifier/index.ts', ...drivers],
      '@connectrpc/connect-node',
    ],
  },
  'src/cli/verify.ts': {
    allowed: ['./command.ts', '../verifier/index.ts', 'node:fs'],
    refused: [
      ...['../verifier/inner/part.ts', '../domain/merkle.ts', '../settings/config.ts', '../tlog/note.ts'],
      ...['pino', ...drivers],
    ],
  },
  'src/domain/any.ts': {
    allowed: ['./money.ts', 'node:crypto'],
    refused: [
      '../settings/config.ts',
      '../keys/mint.ts',
      '../../gen/a_pb.ts',
      'node:fs',
      'pino',
      ...drivers,
      ...web,
    ],
  },
  'src/keys/any.ts': {
    allowed: ['./mint.ts', '../domain/money.ts', '../store/store.ts', '../store/paging.ts', 'node:crypto'],
    refused: [
      ...['../store/sqlite/engine.ts', '../calls/principal.ts', '../rpc/paging.ts', '../../gen/a_pb.ts'],
      ...['pino', ...drivers, ...connect, ...web],
    ],
  },
  'src/calls/any.ts': {
    allowed: [
      ...['./limits.ts', '../domain/money.ts', '../observe/trace.ts', '../store/store.ts'],
      ...['../store/caller-commands.ts', '../keys/key-ring.ts', '../keys/mint.ts', '../keys/seal.ts'],
      ...['node:crypto', '@bufbuild/protobuf', '@bufbuild/protobuf/wkt'],
    ],
    refused: [
      ...['../store/sqlite/engine.ts', '../keys/issuance.ts', '../rpc/paging.ts', '../rest/routes.ts'],
      ...['../internal/typed-calls.ts', '../json/integer.ts', '../../gen/a_pb.ts', 'pino'],
      ...['@connectrpc/connect', '@connectrpc/connect-node', ...drivers, ...web],
    ],
  },
  'src/store/store.ts': {
    allowed: ['./paging.ts', './escrow-commands.ts', '../domain/money.ts', '../observe/distribution.ts'],
    refused: [
      './sqlite/engine.ts',
      '../observe/request-event.ts',
      '../keys/mint.ts',
      '../payment/institution.ts',
      'node:crypto',
      'pino',
    ],
  },
  'src/store/sqlite/any.ts': {
    allowed: [
      './schema.ts',
      '../store.ts',
      '../filing-commands.ts',
      '../../domain/money.ts',
      '../../program/packaged-files.ts',
      '../../observe/distribution.ts',
      'better-sqlite3',
      'drizzle-orm',
      'node:fs',
    ],
    refused: [
      ...['../other/engine.ts', '../../keys/mint.ts', '../../observe/request-event.ts', 'stripe'],
      ...[...connect, ...web],
    ],
  },
  'src/payment/institution.ts': {
    allowed: ['../domain/money.ts'],
    refused: ['./stripe/client.ts', '../store/store.ts', 'stripe', 'node:crypto'],
  },
  'src/payment/institutions.ts': {
    allowed: ['./institution.ts', './stripe/settings.ts'],
    refused: ['./stripe/institution.ts', '../settings/config.ts', '../domain/money.ts', 'stripe', 'node:fs'],
  },
  'src/payment/simulated/any.ts': {
    allowed: ['./rules.ts', '../institution.ts', '../../domain/money.ts', 'better-sqlite3', 'node:fs'],
    refused: ['../stripe/client.ts', '../../store/store.ts', ...drivers.slice(1), ...connect],
  },
  'src/payment/stripe/any.ts': {
    allowed: ['./client.ts', '../institution.ts', '../../domain/money.ts', 'stripe'],
    refused: ['../simulated/ledger.ts', '../../settings/config.ts', ...drivers.slice(0, -1), ...connect],
  },
  'src/payment/another/any.ts': {
    allowed: ['../institution.ts', '../../domain/money.ts'],
    refused: ['../stripe/client.ts', '../../store/store.ts', ...drivers, ...connect],
  },
  'src/reconciliation/any.ts': {
    allowed: [
      './limits.ts',
      '../domain/money.ts',
      '../store/store.ts',
      '../store/paging.ts',
      '../payment/institution.ts',
      'pino',
    ],
    refused: [
      '../store/sqlite/engine.ts',
      '../payment/stripe/client.ts',
      '../rpc/paging.ts',
      ...drivers,
      ...web,
    ],
  },
  'src/tlog/any.ts': {
    allowed: [
      ...['./note.ts', '../domain/merkle.ts', '../store/store.ts', '../store/log-commands.ts'],
      ...['../keys/key-ring.ts', '../keys/seal.ts', 'node:crypto', 'node:fs/promises', 'pino'],
    ],
    refused: [
      ...['../store/sqlite/engine.ts', '../keys/issuance.ts', '../settings/config.ts', '../verifier/note.ts'],
      ...['../rest/routes.ts', '../../gen/a_pb.ts', ...drivers, ...connect, ...web],
    ],
  },
  'src/webhooks/any.ts': {
    allowed: [
      ...['./outgoing.ts', '../domain/clock.ts', '../store/store.ts', '../store/webhook-commands.ts'],
      ...['../keys/key-ring.ts', '../listening/networks.ts', 'node:https', 'node:dns/promises', 'pino'],
    ],
    refused: [
      ...['../store/sqlite/engine.ts', '../keys/issuance.ts', '../settings/config.ts', '../rpc/paging.ts'],
      ...['../rest/routes.ts', '../listening/clients.ts', '../tlog/outgoing.ts', '../../gen/a_pb.ts'],
      ...[...drivers, ...connect],
    ],
  },
  'src/events/any.ts': {
    allowed: ['./polls.ts', '../domain/clock.ts', '../store/store.ts', '../store/event-commands.ts'],
    refused: [
      ...[
        '../store/sqlite/engine.ts',
        '../calls/pipeline.ts',
        '../rpc/event-service.ts',
        '../../gen/a_pb.ts',
      ],
      ...['pino', 'node:crypto', ...drivers, ...connect, ...web],
    ],
  },
  'src/rpc/any.ts': {
    allowed: [
      ...['./paging.ts', '../../gen/a_pb.ts', '../domain/money.ts', '../store/store.ts'],
      ...['../store/paging.ts', '../payment/institution.ts', '../reconciliation/reconciler.ts'],
      ...['../calls/operation.ts', '../calls/principal.ts', '../keys/issuance.ts', '../keys/seal.ts'],
      ...['../tlog/bundle.ts', '../events/feed.ts', '../webhooks/signature.ts'],
    ],
    refused: [
      ...['../rest/routes.ts', '../store/sqlite/engine.ts', '../payment/stripe/client.ts'],
      ...[
        '../calls/pipeline.ts',
        '../calls/idempotency.ts',
        '@connectrpc/connect',
        '@connectrpc/connect-node',
        ...drivers,
        ...web,
      ],
    ],
  },
  'src/json/any.ts': {
    allowed: ['./integer.ts', '../domain/reason.ts'],
    refused: ['../domain/money.ts', '../rest/routes.ts', 'pino', ...drivers, ...connect, ...web],
  },
  'src/rest/any.ts': {
    allowed: [
      '../json/integer.ts',
      ...['./routes.ts', '../../gen/a_pb.ts', '../calls/pipeline.ts', '../domain/reason.ts'],
      ...[
        '../domain/example.ts',
        '../domain/violation.ts',
        '../observe/trace.ts',
        '../listening/clients.ts',
        '../readiness/readiness.ts',
      ],
      'node:http',
    ],
    refused: [
      ...[
        '../rpc/filing-service.ts',
        '../store/store.ts',
        '../keys/mint.ts',
        '../domain/filing.ts',
        '../internal/typed-calls.ts',
      ],
      ...['@connectrpc/connect', '@connectrpc/connect-node', ...drivers],
    ],
  },
  'src/internal/any.ts': {
    allowed: [
      '../json/integer.ts',
      ...['./typed-calls.ts', '../../gen/a_pb.ts', '../calls/bearer.ts', '../domain/reason.ts'],
      ...[
        '../domain/violation.ts',
        '../observe/trace.ts',
        '../listening/clients.ts',
        '../readiness/readiness.ts',
      ],
      ...[...connect, ...web],
    ],
    refused: [
      ...['../rpc/filing-service.ts', '../store/store.ts', '../keys/mint.ts', '../domain/filing.ts'],
      '../rest/routes.ts',
      ...drivers,
    ],
  },
  'src/listening/any.ts': {
    allowed: ['./address.ts', '../domain/clock.ts', '../file-access.ts', 'pino', 'node:tls', ...web],
    refused: ['../settings/config.ts', '../domain/money.ts', '../rest/routes.ts', ...drivers, ...connect],
  },
  'src/observe/any.ts': {
    allowed: ['./trace.ts', '../domain/reason.ts', 'pino', 'node:stream'],
    refused: [
      ...['../domain/filing.ts', '../settings/config.ts', './metrics/figures.ts', './traces/tracer.ts'],
      ...['prom-client', '@opentelemetry/api', ...drivers, ...connect, ...web],
    ],
  },
  'src/observe/metrics/any.ts': {
    allowed: [
      ...['./figures.ts', '../distribution.ts', '../../program/build-info.ts', '../../domain/money.ts'],
      ...['../../store/store.ts', '../../payment/institution.ts', 'pino', 'node:http', 'prom-client'],
    ],
    refused: [
      ...[
        '../traces/tracer.ts',
        '../../settings/config.ts',
        '../../store/sqlite/engine.ts',
        '../../rest/routes.ts',
      ],
      ...['../../payment/stripe/client.ts', '@opentelemetry/api', ...drivers, ...connect, ...web.slice(1)],
    ],
  },
  'src/observe/traces/any.ts': {
    allowed: [
      ...['./tracer.ts', '../tracing.ts', '../../program/build-info.ts', '../../domain/reason.ts'],
      ...['../../store/store.ts', '../../payment/institution.ts', 'pino', '@opentelemetry/api'],
    ],
    refused: [
      ...[
        '../metrics/figures.ts',
        '../../settings/config.ts',
        '../../store/sqlite/engine.ts',
        '../../rest/routes.ts',
      ],
      ...['../../payment/stripe/client.ts', 'prom-client', ...drivers, ...connect, ...web],
    ],
  },
  'src/readiness/any.ts': {
    allowed: [
      ...['./readiness.ts', '../domain/clock.ts', '../calls/credentials.ts', '../store/store.ts'],
      ...['../payment/institution.ts', 'pino'],
    ],
    refused: [
      ...['../settings/config.ts', '../store/sqlite/engine.ts', '../rest/routes.ts', '../calls/pipeline.ts'],
      ...['../payment/stripe/client.ts', ...drivers, ...connect, ...web],
    ],
  },
  'src/program/any.ts': {
    allowed: ['./packaged-files.ts', '../../package.json', 'node:fs', 'node:sea'],
    refused: ['../settings/config.ts', '../domain/money.ts', '../main.ts', 'pino', ...drivers, ...connect],
  },
  'src/verifier/any.ts': {
    allowed: ['./tree.ts', '@noble/hashes/sha2.js', '@noble/curves/ed25519.js'],
    refused: [
      ...['../domain/merkle.ts', '../domain/leaf.ts', '../json/strict-json.ts', '../../gen/a_pb.ts', 'pino'],
      ...['node:crypto', 'node:fs', ...drivers, ...connect, ...web],
    ],
  },
  'src/verifier/time-stamp.ts': {
    allowed: ['./bundle.ts', '@noble/hashes/sha2.js', 'asn1js', 'pkijs'],
    refused: ['../tlog/time-stamp.ts', '../domain/leaf.ts', 'pino', 'node:crypto', ...drivers],
  },
  'src/tlog/time-stamp.ts': {
    allowed: ['./note.ts', 'node:crypto', 'asn1js', 'pkijs'],
    refused: ['../verifier/time-stamp.ts', '../store/store.ts', 'pino', ...drivers, ...web],
  },
  'src/client/any.ts': {
    allowed: [
      './sign.ts',
      '../../gen/a_pb.ts',
      '../calls/canonical-request.ts',
      '../calls/credentials.ts',
      '../webhooks/signature.ts',
      ...connect,
    ],
    refused: [
      '../calls/pipeline.ts',
      '../webhooks/sender.ts',
      '../domain/money.ts',
      '../store/store.ts',
      ...drivers,
    ],
  },
};

/** Every way of importing, all of them of what the part may not import. */
const ways = `export type { Config } from '../settings/config.ts';
import '../settings/config.ts';
export const config = import('../settings/config.ts');
`;

/** Every way of reading the environment. */
const environment = `import process, { env } from 'node:process';
export const all = [env.HOME, process.env.HOME, globalThis.process.env.HOME];
`;

/** The files that the linter is asked about. */
const files: Readonly<Record<string, string>> = {
  ...Object.fromEntries(
    Object.entries(parts).map(([path, { allowed, refused }]) => [
      path,
      [...allowed, ...refused].map((name) => `export * from '${name}';\n`).join(''),
    ]),
  ),
  'src/domain/ways.ts': ways,
  'src/cli/environment.ts': environment,
  'src/main.ts': environment,
  'src/circle/one.ts': "import { two } from './two.ts';\nexport const one = () => two;\n",
  'src/circle/two.ts': "import { one } from './one.ts';\nexport const two = () => one;\n",
};

/** What the linter says of these files, by its own rules: `rule path:line`, each once. */
function lint(): ReadonlySet<string> {
  const folder = temporaryFolder(fileScope);
  copyFileSync(join(root, 'biome.json'), join(folder, 'biome.json'));
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(join(folder, dirname(path)), { recursive: true });
    writeFileSync(join(folder, path), text);
  }
  const words = ['lint', '--reporter=json', '--max-diagnostics=none', '.'];
  const biome = join(root, 'node_modules', '.bin', 'biome');
  const { stdout, stderr, status } = spawnSync(biome, words, { cwd: folder, encoding: 'utf8' });
  assert.equal(status, 1, stderr);
  const { diagnostics } = JSON.parse(stdout) as { diagnostics: readonly Diagnostic[] };
  return new Set(
    diagnostics.map(({ category, location: { path, start } }) => {
      return `${category.split('/').at(-1)} ${path}:${start.line}`;
    }),
  );
}

/** As biome's JSON reporter has it. */
interface Diagnostic {
  readonly category: string;
  readonly location: { readonly path: string; readonly start: { readonly line: number } };
}

/** A part of the sources with rules of its own, in biome.json. */
interface Override {
  readonly includes: readonly string[];
  readonly linter?: { readonly rules?: { readonly style?: { readonly noRestrictedImports?: unknown } } };
}

const found = lint();
const linesOf = (rule: string, path: string) =>
  (files[path] ?? '').split('\n').filter((_line, place) => found.has(`${rule} ${path}:${place + 1}`));

for (const [path, { refused }] of Object.entries(parts)) {
  test(`${path} may import what its part may, and nothing else`, () => {
    const lines = linesOf('noRestrictedImports', path);
    assert.deepEqual(
      lines,
      refused.map((name) => `export * from '${name}';`),
    );
  });
}

test('every part with a rule has its sample here', () => {
  const { overrides } = JSON.parse(readFileSync(join(root, 'biome.json'), 'utf8')) as {
    overrides: Override[];
  };
  const ruled = overrides.filter(({ linter }) => linter?.rules?.style?.noRestrictedImports !== undefined);
  assert.ok(ruled.length > 0);
  const untried = ruled
    .flatMap(({ includes }) => includes)
    .filter((part) => !Object.keys(parts).some((path) => matchesGlob(path, part)));
  assert.deepEqual(untried, []);
});

test('a forbidden import is refused in whatever way it is written', () => {
  assert.deepEqual(linesOf('noRestrictedImports', 'src/domain/ways.ts'), ways.trimEnd().split('\n'));
});

test('the environment is read in main.ts alone', () => {
  const lines = environment.trimEnd().split('\n');
  assert.deepEqual(linesOf('noProcessEnv', 'src/cli/environment.ts'), lines.slice(1));
  assert.deepEqual(linesOf('noProcessEnv', 'src/main.ts'), []);
});

test('modules that import each other are refused', () => {
  for (const path of ['src/circle/one.ts', 'src/circle/two.ts']) {
    assert.equal(linesOf('noImportCycles', path).length, 1, path);
  }
});
