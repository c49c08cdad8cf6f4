import assert from 'node:assert/strict';
import { randomBytes, X509Certificate } from 'node:crypto';
import { chmodSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { test } from 'node:test';
import Sqlite from 'better-sqlite3';
import type { Finding } from '../../src/domain/finding.ts';
import { utcTimestamp } from '../../src/domain/utc.ts';
import { checkDeployment } from '../../src/operations/check/deployment.ts';
import {
  addFurtherMigration,
  furtherSchema,
  presentSchema,
  upgradeFurther,
} from '../store/further-migration.ts';
import { crashCopy } from '../store/promises/fixtures.ts';
import { openRaw } from '../store/raw-database.ts';
import { artsealWith, runHere } from '../support/artseal.ts';
import { fileArtwork } from '../support/calls.ts';
import { makeSelfSigned } from '../support/certificates.ts';
import { createManualClock } from '../support/clock.ts';
import { commandsHere } from '../support/commands-here.ts';
import { commandsOver, connections, testEveryConnection } from '../support/connections.ts';
import { readableNames } from '../support/copy-folder.ts';
import { anyAddresses, freeAddress } from '../support/free-address.ts';
import { issueInto, makeSandbox } from '../support/issued.ts';
import { listenLocally } from '../support/local-server.ts';
import { productionSettings } from '../support/production.ts';
import { startService } from '../support/service.ts';
import { startStripeStandIn } from '../support/stripe-stand-in.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const hexKey = '0123456789abcdef'.repeat(4);

/** Runs `artseal check --json` in this process. */
async function check(env: Record<string, string>) {
  const { code, printed, errors } = await runHere(['check', '--json'], { ...anyAddresses, ...env });
  const findings: Finding[] = printed.map((line) => JSON.parse(line));
  const of = (part: string) =>
    findings.filter((finding) => finding.part === part).map(({ level, text }) => `${level}: ${text}`);
  const faulty = () => findings.filter(({ level }) => level === 'fault').map(({ part }) => part);
  return { code, findings, errors, of, faulty };
}

/** Asserts the exit code of a check and what it finds about one part. */
async function assertFinds(env: Record<string, string>, part: string, code: number, expected: RegExp) {
  const found = await check(env);
  assert.deepEqual([found.code, found.errors], [code, []]);
  assert.match(found.of(part).join('\n'), expected);
  return found;
}

/** The findings about one part at an instant. */
async function findingsAt(nowMs: number, env: Record<string, string>, wanted: string): Promise<string> {
  const found: string[] = [];
  const clock = createManualClock(nowMs);
  for await (const { part, level, text } of checkDeployment({ ...anyAddresses, ...env }, clock))
    if (part === wanted) found.push(`${level}: ${text}`);
  return found.join('\n');
}

/** All bytes of a folder, by the names of its files. */
const contentOf = (folder: string) =>
  readableNames(folder).map((name) => [name, readFileSync(join(folder, name), 'latin1')] as const);

test('wrong settings give a line each, and nothing else is checked', async () => {
  const { code, printed, errors } = await runHere(['check'], {
    ARTSEAL_ENVIRONMENT: 'staging',
    ARTSEAL_LOG_LEVEL: 'loud',
  });
  assert.equal(code, 2);
  assert.deepEqual(
    printed.map((line) => /^fault +settings +(ARTSEAL_\w+) /.exec(line)?.[1]),
    ['ARTSEAL_ENVIRONMENT', 'ARTSEAL_LOG_LEVEL'],
  );
  assert.deepEqual(errors, ['artseal: nothing else was checked: correct the settings first']);
});

test('a sound deployment has no fault before its first start', async (t) => {
  const dataDir = temporaryFolder(t);
  await issueInto(dataDir, 2);
  const before = contentOf(dataDir);
  const address = await freeAddress();
  const { code, faulty, errors, of } = await check({
    ARTSEAL_DATA_DIR: dataDir,
    ARTSEAL_PUBLIC_ADDR: address,
  });
  assert.deepEqual([code, faulty(), errors], [0, [], []]);
  assert.deepEqual(contentOf(dataDir), before, 'no file more, none less, and the same bytes');
  assert.deepEqual(of('serving'), ['ok: no process serves this folder']);
  assert.deepEqual(of('master key'), ['ok: main encrypts and is needed by 2 secrets']);
  assert.match(of('database').join(), /^ok: .*sandbox in CNY, schema \d+, .*quick_check finds no damage/);
  assert.match(of('disk').join(), /^(ok|warning): \d+ MiB are free .* a write was on disk in \d+ ms/);
  assert.match(of('clock').join(), /^ok: it says 20.*(timedatectl|timesyncd)/);
  assert.deepEqual(of('evidence log'), ['ok: it gets its name and its key at the next start']);
  assert.ok(of('address').includes(`ok: ${address} of ARTSEAL_PUBLIC_ADDR is free`), of('address').join());
});

test('check of a running service names the process that serves, and changes nothing, nor after kill -9', async (t) => {
  // Its clock stands still, so it writes nothing by itself.
  const service = await startService(t, { clock: createManualClock() });
  const { host } = new URL(service.publicUrl);
  const env = { ARTSEAL_DATA_DIR: service.dataDir, ARTSEAL_PUBLIC_ADDR: host };
  assert.equal((await fileArtwork(service, await service.platform())).status, 200);
  // SQLite writes the index of the log, -shm, when it is read.
  const contents = (folder: string) => contentOf(folder).filter(([name]) => !name.endsWith('-shm'));
  const killed = crashCopy(t, service.dataDir);
  const [before, after] = [contents(service.dataDir), contents(killed)];
  const serves = new RegExp(`^ok: the process ${process.pid} serves this folder at ${host} and `);
  const { of } = await assertFinds(env, 'serving', 0, serves);
  const held = `^ok: ${host} of ARTSEAL_PUBLIC_ADDR is held by the process ${process.pid} `;
  assert.match(of('address').join(), new RegExp(held));
  assert.deepEqual(contents(service.dataDir), before);
  await assertFinds({ ARTSEAL_DATA_DIR: killed }, 'serving', 0, /^ok: no process serves this folder$/);
  assert.deepEqual(contents(killed), after);
  for (const broken of ['null', `{"pid":${process.pid}}`]) {
    writeFileSync(join(service.dataDir, 'serving.json'), broken);
    const { of: now } = await check(env);
    assert.match(now('serving').join(), /^warning: a process serves this folder, but has not/);
  }
});

test('the evidence log must be the one that was published, under the name that the settings give', async (t) => {
  const service = await startService(t);
  assert.equal((await fileArtwork(service, await service.platform())).status, 200);
  await service.close();
  const env = { ARTSEAL_DATA_DIR: service.dataDir };
  const sound = /^ok: artseal\.invalid\/\w+: of (\d+) leaves \1 are published, as .*log-checkpoint/;
  await assertFinds(env, 'evidence log', 0, sound);
  const renamed = { ...env, ARTSEAL_TLOG_ORIGIN: 'log.example.com/other' };
  await assertFinds(renamed, 'evidence log', 1, /^fault: ARTSEAL_TLOG_ORIGIN is log\.example\.com\/other, /);
  rmSync(join(service.dataDir, 'log-checkpoint'));
  const missing = /log-checkpoint is missing.*artseal evidence fork --accept/;
  const { faulty } = await assertFinds(env, 'evidence log', 1, missing);
  assert.deepEqual(faulty(), ['evidence log']);
});

test('one run reports all faults, each with what to do', async (t) => {
  const dataDir = temporaryFolder(t);
  await issueInto(dataDir, 2);
  const standIn = await startStripeStandIn(t);
  const env = { ARTSEAL_DATA_DIR: dataDir, ...standIn.settings };
  standIn.revokeKey(true);
  const held = new URL(await listenLocally(t, createServer(), () => {})).host;
  chmodSync(join(dataDir, 'artseal.db'), 0o666);
  const { certificateFile, keyFile } = makeSelfSigned(temporaryFolder(t));
  chmodSync(keyFile, 0o644);
  const { code, of, faulty, findings } = await check({
    ...env,
    ARTSEAL_PUBLIC_TLS_CERT: certificateFile,
    ARTSEAL_PUBLIC_TLS_KEY: keyFile,
    ARTSEAL_DATADIR: '/srv',
    ARTSEAL_MASTER_KEY: `next:${hexKey}`,
    ARTSEAL_INTERNAL_ADDR: held,
  });
  assert.equal(code, 1);
  assert.deepEqual(faulty(), ['files', 'master key', 'address', 'provider']);
  assert.match(of('files').join(), /artseal\.db \(mode 0666\) may be changed by other users.*chmod go-w/);
  const readable = of('files').filter((finding) => finding.includes('.pem'));
  assert.deepEqual(readable, [
    `warning: ${keyFile} (mode 0644) may be read by every user of this machine: chmod o-r '${keyFile}'`,
  ]);
  assert.deepEqual(of('master key'), [
    'fault: 2 secrets encrypted with a master key main that is missing: put it back. Without it these secrets cannot be used',
  ]);
  assert.match(of('address').join(), new RegExp(`fault: ${held} of ARTSEAL_INTERNAL_ADDR .*EADDRINUSE`));
  assert.match(of('provider').join(), /^fault: stripe rejects the credentials: .*401.*set others/);
  assert.match(of('settings').join(), /warning: ARTSEAL_DATADIR is not a setting/);
  const text = JSON.stringify(findings);
  for (const secret of [standIn.apiKey, standIn.webhookSecret, hexKey])
    assert.equal(text.includes(secret), false);
});

test('check warns of numbers that run out, and of a platform near its cap', async (t) => {
  const dataDir = temporaryFolder(t);
  const { platforms } = await issueInto(dataDir, 2);
  const env = { ARTSEAL_DATA_DIR: dataDir };
  assert.deepEqual((await check(env)).of('numbers'), [
    'ok: 0 of 999999 filing numbers of this year are used',
  ]);
  const [first = assert.fail()] = platforms;
  for (const { caller } of platforms)
    assert.equal((await runHere(['platform', 'set', caller, '--filing-cap', '5'], env)).code, 0);
  const service = await startService(t, { dataDir });
  for (let filed = 0; filed < 4; filed += 1) await fileArtwork(service, first);
  await service.close();
  const { code, of } = await check(env);
  const expected = [
    `warning: ${first.caller} has made 4 filings this year; its cap is 5: artseal platform set --filing-cap changes it`,
  ];
  assert.deepEqual([code, of('numbers')], [0, expected]);
  const year = new Date().getUTCFullYear();
  openRaw(t, dataDir).exec(`INSERT INTO number_sequence VALUES ('ESCROW', ${year}, 1500000)`);
  assert.match(
    (await check(env)).of('numbers').join(),
    /^warning: 1500000 of 1679616 escrow ids of this year/,
  );
});

test('a missing database is a fault if the folder had one', async (t) => {
  const dataDir = temporaryFolder(t);
  writeFileSync(join(dataDir, 'sandbox-credentials.json'), '{}', { mode: 0o600 });
  const lost = /^fault: .*artseal\.db is missing, but sandbox-credentials\.json is there/;
  await assertFinds({ ARTSEAL_DATA_DIR: dataDir }, 'database', 1, lost);
  assert.deepEqual(readdirSync(dataDir), ['sandbox-credentials.json']);
});

test('check connects to the proxy of webhooks, and names it without its password', async (t) => {
  const env = { ARTSEAL_DATA_DIR: temporaryFolder(t) };
  await makeSandbox(env.ARTSEAL_DATA_DIR);
  assert.deepEqual((await check(env)).of('webhooks'), [
    'ok: they are sent to public addresses and 127.0.0.0/8, ::1/128',
  ]);
  const proxy = createServer();
  const url = await listenLocally(t, proxy, () => proxy.closeAllConnections());
  const { host } = new URL(url);
  const allowed = { ...env, ARTSEAL_WEBHOOK_NETWORKS: '10.20.0.0/16' };
  const through = { ...allowed, ARTSEAL_WEBHOOK_PROXY: `http://ann:s3cret@${host}` };
  const to = 'they are sent to public addresses and 10.20.0.0/16';
  const reached = new RegExp(`^ok: ${to}, through ${url}, which accepts connections$`);
  await assertFinds(through, 'webhooks', 0, reached);
  const overTls = { ...through, ARTSEAL_WEBHOOK_PROXY: `https://${host}` };
  await assertFinds(overTls, 'webhooks', 1, /^fault: the proxy https:\/\/127.* cannot be reached/);
  proxy.close();
  const gone = await assertFinds(through, 'webhooks', 1, /ECONNREFUSED.*; nothing is sent until it can$/);
  assert.deepEqual(gone.faulty(), ['webhooks']);
  assert.doesNotMatch(gone.of('webhooks').join(), /s3cret/);
});

test('check and the server warn of listeners that other machines reach without TLS', async (t) => {
  const { certificateFile, keyFile } = makeSelfSigned(temporaryFolder(t));
  const env = { ARTSEAL_DATA_DIR: temporaryFolder(t), ARTSEAL_PUBLIC_ADDR: 'localhost:0' };
  await makeSandbox(env.ARTSEAL_DATA_DIR);
  const ok = 'ok: no listener takes calls from other machines without TLS';
  assert.deepEqual((await check(env)).of('tls'), [ok]);
  const open = {
    ...env,
    ARTSEAL_PUBLIC_ADDR: '0.0.0.0:0',
    ARTSEAL_INTERNAL_ADDR: '[::]:0',
    ARTSEAL_METRICS_ADDR: '0.0.0.0:0',
  };
  const exposed = await check(open);
  const [, internal = '', metrics = ''] = exposed.of('tls');
  assert.equal(exposed.code, 0);
  assert.match(
    exposed.of('tls')[0] ?? '',
    /^warning: 0\.0\.0\.0:0 of ARTSEAL_PUBLIC_ADDR .* set ARTSEAL_PUBLIC_TLS_CERT and .* only that proxy reach/,
  );
  assert.match(internal, /^warning: \[::\]:0 of ARTSEAL_INTERNAL_ADDR .* set ARTSEAL_INTERNAL_TLS_CERT/);
  assert.match(metrics, /^warning: 0\.0\.0\.0:0 of ARTSEAL_METRICS_ADDR returns metrics to other machines/);
  const tls = {
    ...{ ARTSEAL_PUBLIC_TLS_CERT: certificateFile, ARTSEAL_PUBLIC_TLS_KEY: keyFile },
    ...{ ARTSEAL_INTERNAL_TLS_CERT: certificateFile, ARTSEAL_INTERNAL_TLS_KEY: keyFile },
  };
  assert.deepEqual((await check({ ...open, ...tls, ARTSEAL_METRICS_ADDR: 'off' })).of('tls'), [ok]);

  const { logLines } = await startService(t, {
    env: { ARTSEAL_METRICS_ADDR: '0.0.0.0:0' },
    dataDir: env.ARTSEAL_DATA_DIR,
  });
  const warnings = logLines
    .map((line) => JSON.parse(line))
    .filter(({ msg }) => msg === 'a listener has no TLS');
  assert.deepEqual(
    warnings.map(({ level, reason }) => [level, `warning: ${reason}`]),
    [[40, metrics]],
  );
});

test('a certificate is valid, then close to its end, then expired', async (t) => {
  const { certificateFile, keyFile, certificate } = makeSelfSigned(temporaryFolder(t));
  const dataDir = temporaryFolder(t);
  await makeSandbox(dataDir);
  const env = {
    ...anyAddresses,
    ARTSEAL_DATA_DIR: dataDir,
    ARTSEAL_INTERNAL_TLS_CERT: certificateFile,
    ARTSEAL_INTERNAL_TLS_KEY: keyFile,
  };
  const { validFromDate, validToDate } = new X509Certificate(certificate);
  const lifeMs = +validToDate - +validFromDate;
  const named = `${certificateFile} of ARTSEAL_INTERNAL_TLS_CERT`;
  const endsAt = utcTimestamp(+validToDate);
  for (const [part, finding] of [
    [0.6, `ok: ${named} is valid until ${endsAt}`],
    [0.7, `warning: ${named} expires at ${endsAt}: renew it`],
    [1, `fault: ${named} expired at ${endsAt}, and clients reject it: renew it`],
  ] as const)
    assert.equal(await findingsAt(+validFromDate + part * lifeMs, env, 'certificate'), finding);
});

test('check looks at the backup folder and at the last verified backup', async (t) => {
  const [dataDir, folder] = [temporaryFolder(t), temporaryFolder(t)];
  await makeSandbox(dataDir);
  const env = { ARTSEAL_DATA_DIR: dataDir };
  const found = async (more = {}) => (await check({ ...env, ...more })).of('backup').join();
  assert.equal(await found(), 'ok: none are taken regularly, which a sandbox does not need');
  const scheduled = { ARTSEAL_BACKUP_DIR: folder };
  assert.equal(await found(scheduled), `warning: ${folder} has no backup yet: serve takes one`);
  const rotate = (into: string) => runHere(['backup', 'rotate', '--into', into, '--keep', '2'], env);
  assert.match((await rotate(folder)).printed.join(), /^taken and verified: /);
  const file = join(folder, readdirSync(folder)[0] ?? '');
  assert.match(await found(), new RegExp(`^ok: the last verified one was taken at 2\\S+Z: ${file}$`));
  assert.equal((await rotate(join(folder, 'none'))).code, 1);
  assert.match(await found(scheduled), /^fault: the backup of .* failed: \/.* does not exist: check/);
});

test('check tries the credentials of the provider, which may not answer', async (t) => {
  const dataDir = temporaryFolder(t);
  await makeSandbox(dataDir);
  const standIn = await startStripeStandIn(t);
  const env = { ARTSEAL_DATA_DIR: dataDir, ...standIn.settings };
  await assertFinds(env, 'provider', 0, /^ok: stripe accepts the credentials$/);
  assert.deepEqual(
    standIn.requests.map(({ method }) => method),
    ['GET'],
  );
  const nobody = { ...env, ARTSEAL_STRIPE_URL: `http://${await freeAddress()}` };
  await assertFinds(nobody, 'provider', 1, /^fault: stripe does not respond: .*ECONNREFUSED/);
});

/** Changes of the database of a sandbox, with the finding of a check. */
const databases: Readonly<Record<string, readonly [finding: RegExp, change: (file: string) => void]>> = {
  'damaged in the middle': [
    /^fault: .*artseal\.db .*(damaged|malformed).*restore a backup/,
    (file) => writeFileSync(file, readFileSync(file).fill(randomBytes(4_096), 4_096 * 3, 4_096 * 7)),
  ],
  'that needs a later version': [
    /^fault: .*artseal\.db needs artseal 1\.3\.0 or later: it has schema 99, and this version knows \d+$/,
    (file) => {
      const client = new Sqlite(file);
      client.pragma('user_version = 99');
      client.exec("UPDATE oldest_version SET schema = 99, version = '1.3.0'");
      client.close();
    },
  ],
};
for (const [name, [finding, change]] of Object.entries(databases)) {
  test(`check of a database: ${name}`, async (t) => {
    const dataDir = temporaryFolder(t);
    await issueInto(dataDir, 1);
    const file = join(dataDir, 'artseal.db');
    change(file);
    const before = readFileSync(file);
    const { of } = await assertFinds({ ARTSEAL_DATA_DIR: dataDir }, 'database', 1, finding);
    assert.match(of('master key').join(), /^unchecked: /);
    assert.ok(before.equals(readFileSync(file)));
  });
}

test('check uses a database of a later version, and says when the next start upgrades one', async (t) => {
  const [later, earlier] = [temporaryFolder(t), temporaryFolder(t)];
  for (const dataDir of [later, earlier]) await issueInto(dataDir, 1);
  upgradeFurther(later);
  const used = await assertFinds({ ARTSEAL_DATA_DIR: later }, 'database', 0, /^ok: .*, schema \d+, /);
  assert.match(used.of('master key').join(), /^ok: /);
  addFurtherMigration(t);
  const due = new RegExp(
    `^warning: .* schema ${presentSchema}: the next start upgrades it to ${furtherSchema}$`,
  );
  await assertFinds({ ARTSEAL_DATA_DIR: earlier }, 'database', 0, due);
});

test('a database of another deployment is a fault, and a missing one of a production', async (t) => {
  const [dataDir, none] = [temporaryFolder(t), temporaryFolder(t)];
  await makeSandbox(dataDir);
  const other = { ARTSEAL_DATA_DIR: dataDir, ARTSEAL_CURRENCY: 'EUR' };
  await assertFinds(other, 'database', 1, /^fault: .* is in CNY: set ARTSEAL_CURRENCY to match$/);
  await assertFinds({ ARTSEAL_DATA_DIR: none }, 'database', 0, /^warning: there is no database .* yet/);
  assert.deepEqual(readdirSync(none), []);
  const production = { ...productionSettings(t), ARTSEAL_DATA_DIR: none };
  const missing = await findingsAt(Date.now(), production, 'database');
  assert.match(missing, /^fault: there is no database .*artseal init/);
});

test('a folder that cannot be written is a fault of the disk', async () => {
  const unwritable = /^fault: \/proc\/self cannot be written: /;
  await assertFinds({ ARTSEAL_DATA_DIR: '/proc/self' }, 'disk', 1, unwritable);
});

test('check compares the clock with the newest filing', async (t) => {
  const clock = createManualClock();
  const filedMs = clock.nowMs();
  const service = await startService(t, { clock });
  assert.equal((await fileArtwork(service, await service.platform())).status, 200);
  await service.close();
  for (const [nowMs, finding] of [
    [filedMs + 10_000, /^ok: .*, after the newest filing; /],
    [filedMs - 4_000, /^ok: it says [^,]*; /],
    [filedMs - 100_000, /^warning: .*, and the newest filing is of 20.*: set it/],
    [
      filedMs - 400_000,
      /^fault: .* before the newest .*: set it if .* artseal clock accept, and the next filing/,
    ],
    [
      filedMs + 10 * 366 * 86_400_000,
      /^fault: the clock is \d+ s \(36\d\d days\) ahead of the newest filing, and filings are rejected: .*artseal clock accept$/,
    ],
    [Date.UTC(1970, 0, 2), /^fault: .*has not been set.*: set it/],
  ] as const)
    assert.match(await findingsAt(nowMs, { ARTSEAL_DATA_DIR: service.dataDir }, 'clock'), finding);
});

test('check says whether signed calls are rejected since a restore', async (t) => {
  const dataDir = temporaryFolder(t);
  await makeSandbox(dataDir);
  const [servedMs, gapMs] = [Date.UTC(2026, 10, 21), 300_000];
  const found = async (servedAtS: number | null, nowMs: number) => {
    openRaw(t, dataDir).prepare('INSERT INTO restoration VALUES (NULL, 1, 1, ?)').run(servedAtS);
    return findingsAt(nowMs, { ARTSEAL_DATA_DIR: dataDir }, 'restored');
  };
  assert.match(await found(null, servedMs), /^warning: .*not served since: .*serve no other folder/);
  const rejected =
    'fault: signed calls are rejected until 2026-11-21T00:05:01Z, since it was restored from a backup: wait';
  assert.equal(await found(servedMs / 1_000, servedMs + gapMs), rejected);
  assert.match(await found(servedMs / 1_000, servedMs + gapMs + 1_000), /^ok: .*accepted again$/);
});

test('a remote server checks itself with its own settings', async (t) => {
  const service = await startService(t, { env: { ARTSEAL_TIME_ZONE: 'Asia/Shanghai' } });
  const env = { ARTSEAL_TOKEN: await service.token(true), ARTSEAL_DATA_DIR: temporaryFolder(t) };
  const artseal = artsealWith(env, ['--url', service.internalUrl]);
  const [settings, ...others] = await artseal.list('check');
  const text = `sandbox in ${service.dataDir}, CNY, Asia/Shanghai, simulated`;
  assert.deepEqual(settings, { level: 'ok', part: 'settings', text });
  assert.ok(others.some(({ part }) => part === 'database'));
  assert.match(await artseal.text('check'), /^ok {8}serving {6}the process \d+ serves this folder at /m);
  chmodSync(join(service.dataDir, 'artseal.db'), 0o666);
  const { code, printed } = await runHere(['check', '--url', service.internalUrl], env);
  assert.equal(code, 1);
  assert.match(printed.join('\n'), /^fault {5}files {8}\S+artseal\.db /m);
});

for (const connection of connections)
  test(`over ${connection}: a deployment is checked`, async (t) => {
    const artseal = await commandsOver(t, connection, { env: anyAddresses, commands: commandsHere });
    const findings: readonly Finding[] = await artseal.list('check');
    const serving = findings.find(({ part }) => part === 'serving');
    const isStopped = connection === 'a stopped folder';
    assert.match(
      serving?.text ?? '',
      isStopped ? /^no process serves/ : /^the process \d+ serves this folder/,
    );
  });

testEveryConnection('check');
