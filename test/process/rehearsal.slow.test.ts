import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { utcTimestamp } from '../../src/domain/utc.ts';
import { readBackupStatus } from '../../src/operations/backup/standing.ts';
import { fileArtwork } from '../support/calls.ts';
import { makeSelfSigned } from '../support/certificates.ts';
import { eventually } from '../support/eventually.ts';
import { type FilingRow, forgeIn, leafOfFiling } from '../support/forging.ts';
import { skipUnlessInstalled } from '../support/installed.ts';
import { issueInto } from '../support/issued.ts';
import { scrape } from '../support/metrics.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import {
  assertOneLine,
  runCommand,
  runShell,
  serveWatched,
  type WatchedService,
} from '../support/watched-command.ts';

const withinMs = 60_000;

/** The log lines of a service with this message. */
const logged = (service: WatchedService, message: string) =>
  service
    .stderr()
    .split('\n')
    .filter((line) => line.includes(`"msg":"${message}"`))
    .map((line) => JSON.parse(line));

/** Reads /readyz without checking the certificate. */
async function readiness(t: TestContext, { publicUrl }: WatchedService): Promise<string> {
  return (await runShell(t, `curl -sSk '${publicUrl}/readyz'`)).stdout;
}

test('readiness, check, metrics and log agree about a damaged backup and an expired certificate', {
  skip: skipUnlessInstalled('curl'),
  timeout: 300_000,
}, async (t) => {
  const [dataDir, backups] = [temporaryFolder(t), temporaryFolder(t)];
  const env = { ARTSEAL_DATA_DIR: dataDir };
  const { platforms } = await issueInto(dataDir, 1);
  const [platform] = platforms;
  assert.ok(platform);
  const sound = await serveWatched(t, env);
  const { filingNo } = (await fileArtwork(sound, platform)).json;
  await fileArtwork(sound, platform);
  assert.equal(await sound.stop(), 0);
  const rotate = () => runCommand(['backup', 'rotate', '--into', backups, '--keep', '1'], env);
  assert.equal((await rotate()).code, 0);
  const [good = ''] = readdirSync(backups);
  const takenAt = (await readBackupStatus(dataDir))?.last?.takenAt ?? '';
  const database = join(dataDir, 'artseal.db');
  const genuine = readFileSync(database);
  // An attacker changes the author, and hash and leaf to match.
  forgeIn(database, (client) => {
    const row = client.prepare<[], FilingRow>('SELECT * FROM filing ORDER BY id').get();
    assert.ok(row);
    const { hash, data } = leafOfFiling({ ...row, author: 'Zhang Daqian' });
    client.prepare("UPDATE filing SET author = 'Zhang Daqian', hash = ? WHERE id = ?").run(hash, row.id);
    client.prepare('UPDATE log_leaf SET data = replace(data, ?, ?)').run(leafOfFiling(row).data, data);
  });
  // Without this file all leaves are compared at the start, as after a restore.
  rmSync(join(dataDir, 'log-verified'));

  const expired = makeSelfSigned(temporaryFolder(t), { days: -1 });
  const expiredAt = utcTimestamp(+new X509Certificate(expired.certificate).validToDate);
  const tls = {
    ARTSEAL_PUBLIC_TLS_CERT: expired.certificateFile,
    ARTSEAL_PUBLIC_TLS_KEY: expired.keyFile,
  };
  const service = await serveWatched(t, { ...env, ...tls });
  const failed = await rotate();
  assertOneLine(failed, 1, new RegExp(`${filingNo}.*artseal\\.tar\\.damaged`));
  assert.deepEqual(readdirSync(backups), ['artseal.tar.damaged', good].sort());
  const verify = (name: string) => runCommand(['backup', 'verify', join(backups, name)], {});
  assert.equal((await verify(good)).code, 0);
  assert.equal((await verify('artseal.tar.damaged')).code, 1);

  const damageIsReported = async (running: WatchedService) => {
    const values = await eventually('the metric', withinMs, async () => {
      const { value } = await scrape(running.metricsUrl);
      return value('artseal_backup_failing') === 1 && value;
    });
    assert.equal(values('artseal_backup_taken_seconds'), Date.parse(takenAt) / 1_000);
    assert.equal(
      values('artseal_certificate_end_seconds', { listener: 'public' }),
      Date.parse(expiredAt) / 1_000,
    );
    const [over] = logged(running, 'the certificate has expired: clients reject it');
    assert.deepEqual([over?.level, over?.listener, over?.endsAt], [50, 'public', expiredAt]);
    // Calls still work, so neither is part of readiness; the damaged record is.
    assert.match(await readiness(t, running), /Not ready: evidence\./);
  };
  await damageIsReported(service);
  const [wrong] = await eventually('the log', withinMs, () => {
    const lines = logged(service, 'backups are not in order');
    return lines.length > 0 && lines;
  });
  // This sandbox needs no backups.
  assert.equal(wrong.level, 40);
  assert.match(wrong.reason, new RegExp(`^the backup of 2\\S+Z failed: .*${filingNo}`));

  const check = async () => {
    const { code, stdout } = await runCommand(['check', '--json'], { ...env, ...tls });
    const findings: { level: string; part: string; text: string }[] = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    return { code, findings, of: (part: string) => findings.find((finding) => finding.part === part) };
  };
  const bad = await check();
  assert.equal(bad.code, 1);
  assert.deepEqual(
    bad.findings.filter(({ level }) => level === 'fault').map(({ part }) => part),
    ['evidence log', 'certificate'],
  );
  assert.equal(bad.of('backup')?.level, 'warning');
  assert.equal(bad.of('backup')?.text, wrong.reason);
  assert.match(bad.of('certificate')?.text ?? '', new RegExp(`expired at ${expiredAt}.*renew it$`));
  assert.equal(await service.stop(), 0);

  // The server takes backups itself, and keeps the good one.
  const taking = { ...env, ...tls, ARTSEAL_BACKUP_DIR: backups, ARTSEAL_BACKUP_KEEP: '1' };
  const own = await serveWatched(t, taking);
  const [reported] = await eventually('the failure', withinMs, () => {
    const lines = logged(own, 'no backup could be taken; it is tried again');
    return lines.length > 0 && lines;
  });
  assert.match(reported.reason, new RegExp(filingNo));
  await damageIsReported(own);
  assert.deepEqual(readdirSync(backups), ['artseal.tar.damaged', good].sort());
  assert.equal(await own.stop(), 0);

  writeFileSync(database, genuine);
  const mended = await serveWatched(t, taking);
  await eventually('a backup', withinMs, () => logged(mended, 'a backup was taken').length > 0);
  await eventually('the metric', withinMs, async () => {
    const { value } = await scrape(mended.metricsUrl);
    return value('artseal_backup_failing') === 0;
  });
  assert.deepEqual(readdirSync(backups).includes(good), false);
  assert.match((await check()).of('backup')?.text ?? '', /^the last verified one was taken at 2/);
  assert.equal(await mended.stop(), 0);
});
