import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { runHere } from '../support/artseal.ts';
import { eventually } from '../support/eventually.ts';
import { issueInto } from '../support/issued.ts';
import { artwork } from '../support/samples.ts';
import { send } from '../support/signed-request.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { startTimeStampAuthority } from '../support/time-stamp-authority.ts';
import { runBounded, serveWatched } from '../support/watched-command.ts';
import { startWitness } from '../support/witness-stand-in.ts';

/** The longest wait for something that has to happen. */
const timeoutMs = 60_000;

test('evidence has cosignatures and a time stamp; without the required witnesses there is no evidence', {
  timeout: 300_000,
}, async (t) => {
  const folder = temporaryFolder(t);
  const dataDir = join(folder, 'data');
  const { platform } = await issueInto(dataDir, 1);
  const witnesses = [await startWitness(t, 'one.example/w'), await startWitness(t, 'two.example/w')];
  const authority = await startTimeStampAuthority(t);
  const witnessesFile = join(folder, 'witnesses');
  writeFileSync(witnessesFile, witnesses.map(({ vkey, url }) => `${vkey} ${url}/\n`).join(''));
  const plain = { ARTSEAL_DATA_DIR: dataDir, ARTSEAL_TLOG_ORIGIN: 'log.example/artseal' };
  const env = {
    ...plain,
    ARTSEAL_TLOG_WITNESSES_FILE: witnessesFile,
    ARTSEAL_TLOG_WITNESSES_REQUIRED: '2',
    ARTSEAL_TLOG_TSA_URL: authority.url,
    ARTSEAL_TLOG_TSA_EVERY: '1m',
    ARTSEAL_TLOG_TSA_CA: authority.caFile,
  };
  const filed = async (publicUrl: string): Promise<string> => {
    const request = { target: '/api/v1/filing', body: JSON.stringify(artwork) };
    const { status, json } = await send(publicUrl, platform, request);
    assert.equal(status, 200);
    return json.filingNo;
  };
  const asked = (publicUrl: string, filingNo: string) =>
    send(publicUrl, platform, { target: `/api/v1/filing/${filingNo}/evidence` });

  // Witnesses get the key of a log before its first request.
  const first = await serveWatched(t, plain);
  const filingNo = await filed(first.publicUrl);
  assert.equal(await first.stop(), 0, first.stderr());
  const { printed } = await runHere(['evidence', 'vkey'], plain);
  const [vkey = ''] = printed;
  for (const { logs } of witnesses) logs.add(vkey);

  const second = await serveWatched(t, env);
  const later = await filed(second.publicUrl);
  // An earlier checkpoint stays uncosigned until the log grows.
  const evidence = await eventually('cosigned and stamped evidence', timeoutMs, async () => {
    const answer = await asked(second.publicUrl, filingNo);
    const isCosigned = witnesses.every(({ name }) => answer.json.proof?.includes(`\n— ${name} `));
    return isCosigned && answer.json.timeStamp !== undefined ? answer : undefined;
  });
  const bundle = join(folder, 'bundle.json');
  writeFileSync(bundle, evidence.text);
  const trust = ['--key', vkey, ...witnesses.flatMap((witness) => ['--witness', witness.vkey])];
  const words = [...trust, '--witnesses-required', '2', '--tsa-ca', authority.caFile];
  const verified = await runBounded(t, ['verify', bundle, ...words], {});
  assert.equal(verified.code, 0, verified.stderr);
  for (const witness of witnesses) assert.ok(verified.stdout.includes(`cosigned by ${witness.vkey} at `));
  assert.match(verified.stdout, /^existed before 20\S+Z according to CN=authority of the test$/m);
  const published = `${second.publicUrl}/log`;
  const auditWords = ['log', 'audit', published, ...words, '--stamped', bundle, '--max-age', '1d'];
  const audited = await runBounded(t, auditWords, {});
  assert.deepEqual([audited.code, audited.stderr], [0, '']);
  assert.match(audited.stdout, /^the tree of \d+ leaves existed before 20\S+Z according to CN=authority/m);
  await eventually('the later filing is published', timeoutMs, async () => {
    return (await asked(second.publicUrl, later)).status === 200;
  });
  const checkpoint = await (await fetch(`${second.publicUrl}/log/checkpoint`)).text();
  assert.equal(readFileSync(join(dataDir, 'log-checkpoint'), 'utf8'), checkpoint);
  for (const { name } of witnesses) assert.ok(checkpoint.includes(`\n— ${name} `));

  // If one of the two fails, filing continues, and new evidence has to wait.
  for (const witness of witnesses.slice(1)) witness.lie = 'ERROR';
  const unseen = await filed(second.publicUrl);
  const rejected = await asked(second.publicUrl, unseen);
  assert.deepEqual([rejected.status, rejected.json.code], [503, 'UNAVAILABLE']);
  assert.ok(Number(rejected.headers['retry-after']) >= 1);
  assert.equal((await asked(second.publicUrl, filingNo)).status, 200);
  assert.equal(await (await fetch(`${second.publicUrl}/log/checkpoint`)).text(), checkpoint);
  await eventually('it is logged', timeoutMs, () =>
    /1 of 2 witnesses cosigned it, and 2 are required/.test(second.stderr() + second.stdout()),
  );
  // Also after a kill: the file has the last checkpoint, the witnesses what they cosigned.
  await second.stop('SIGKILL');
  for (const witness of witnesses) witness.lie = undefined;
  const third = await serveWatched(t, env);
  await eventually('the filing is published', timeoutMs, async () => {
    return (await asked(third.publicUrl, unseen)).status === 200;
  });
  assert.equal(await third.stop(), 0, third.stderr());
  for (const { asked: all } of witnesses) assert.ok(all.some(({ status }) => status === 409));
});
