import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { startTimeStamping, timeStampLimits } from '../../../src/evidence/log/time-stamping.ts';
import { silentLog } from '../../../src/lib/log.ts';
import { createManualClock } from '../../support/clock.ts';
import { eventually } from '../../support/eventually.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import {
  startTimeStampAuthority,
  type TimeStampAuthority,
  type TimeStampLie,
} from '../../support/time-stamp-authority.ts';
import { type Publishing, startPublishing } from './publishing.ts';

const timeoutMs = 60_000;
const everyMs = 60_000;

const settingsOf = ({ url, caFile }: TimeStampAuthority) => ({
  ARTSEAL_TLOG_TSA_URL: url,
  ARTSEAL_TLOG_TSA_EVERY: '1m',
  ARTSEAL_TLOG_TSA_CA: caFile,
});

/** Advances the clock of a service; the authority uses the clock of the machine. */
function pass({ clock }: Publishing, ms: number): void {
  clock.advance(ms);
  clock.setWall(Date.now());
}

const stampFor = ({ execute }: Publishing, leafIndex: number) =>
  execute({ kind: 'FindTimeStamp', leafIndex });

/** Resolves to the stamped checkpoint that covers a leaf, once there is one. */
const stamped = (service: Publishing, leafIndex: number) =>
  eventually('a time stamp', timeoutMs, () => stampFor(service, leafIndex));

/** Verifies a token over a text with openssl. */
function assertVerified(
  t: TestContext,
  text: string,
  token: Uint8Array,
  { caFile }: TimeStampAuthority,
): void {
  const cwd = temporaryFolder(t);
  writeFileSync(join(cwd, 'text'), text);
  writeFileSync(join(cwd, 'token'), token);
  const words = ['ts', '-verify', '-in', 'token', '-token_in', '-data', 'text', '-CAfile', caFile];
  execFileSync('openssl', words, { cwd, stdio: 'pipe' });
}

test('the first checkpoint is stamped at once, later ones once per period in which the log grew', async (t) => {
  const authority = await startTimeStampAuthority(t);
  const service = await startPublishing(t, { env: settingsOf(authority) });
  const first = await stamped(service, 0);
  assert.equal(first.note, service.publication.current()?.note);
  assertVerified(t, `${first.note.split('\n\n')[0]}\n`, first.timeStamp, authority);

  const leaf = await service.file();
  await service.published(leaf);
  assert.equal(await stampFor(service, leaf), undefined);
  pass(service, everyMs);
  const second = await stamped(service, leaf);
  assert.equal(second.size, leaf + 1);
  assertVerified(t, `${second.note.split('\n\n')[0]}\n`, second.timeStamp, authority);
  // A leaf keeps the first stamp that covers it.
  const later = await service.file();
  await service.published(later);
  assert.equal((await stampFor(service, 0))?.note, first.note);
  assert.equal((await stampFor(service, leaf))?.note, second.note);

  // Another process of the registry requests no stamp that exists.
  await service.close();
  const asked = authority.asked();
  const again = await startPublishing(t, { env: settingsOf(authority), dataDir: service.dataDir });
  const stampedAgain = await stamped(again, later);
  await again.close();
  const third = await startPublishing(t, { env: settingsOf(authority), dataDir: service.dataDir });
  assert.equal((await stampFor(third, later))?.note, stampedAgain.note);
  await third.close();
  assert.equal(authority.asked(), asked + 1);
});

test('of several instances the one that leads stamps, and another one takes over within 15 seconds', async (t) => {
  const authority = await startTimeStampAuthority(t);
  const service = await startPublishing(t);
  const { execute, publication } = service;
  const clock = createManualClock();
  const leading = new Set<string>();
  for (const name of ['one', 'other']) {
    const terms = { url: authority.url, everyMs, authorities: readFileSync(authority.caFile, 'utf8') };
    const log = silentLog;
    const leads = () => leading.has(name);
    const stamping = startTimeStamping({ terms, publication, execute, leads, randomBytes, clock, log });
    t.after(stamping.stop);
  }
  const pass = async (seconds: number) => {
    for (let passed = 0; passed < seconds; passed += 1) {
      clock.advance(1_000);
      clock.setWall(Date.now());
      await new Promise(setImmediate);
    }
  };
  await pass(30);
  assert.equal(authority.asked(), 0, 'none leads');
  leading.add('one');
  await pass(2);
  await stamped(service, 0);
  const leaf = await service.file();
  await service.published(leaf);
  leading.delete('one');
  leading.add('other');
  await pass(2);
  await stamped(service, leaf);
  assert.equal(authority.asked(), 2);
});

/** Wrong responses. Wrong tokens are tested with the verifier. */
const lies: Readonly<Partial<Record<TimeStampLie, RegExp>>> = {
  ANOTHER_NONCE: /the nonce differs/,
  REJECTED: /rejected the query \(status 2/,
  ALTERED: /signature is not valid|digest doesn't match/,
  GARBAGE: /not a time-stamp reply/,
  ENDLESS: /more than 65536 bytes/,
  REDIRECT: /redirects \(302\)/,
  ERROR: /returned an error \(503: "busy"\)/,
};

test('a wrong response is logged, not stored, and requested again', async (t) => {
  const authority = await startTimeStampAuthority(t);
  const service = await startPublishing(t, { env: settingsOf(authority) });
  await stamped(service, 0);
  const logLine = (place: number) =>
    eventually('a line of the log', timeoutMs, () => {
      const lines = service.logLines.filter((line) => line.includes('time stamped'));
      return lines[place] === undefined ? undefined : JSON.parse(lines[place]);
    });
  let place = 0;
  for (const [lie, expected] of Object.entries(lies) as [TimeStampLie, RegExp][]) {
    authority.lie = lie;
    const leaf = await service.file();
    await service.published(leaf);
    pass(service, everyMs);
    assert.match((await logLine(place)).why, expected, lie);
    assert.equal(await stampFor(service, leaf), undefined, lie);
    authority.lie = undefined;
    pass(service, timeStampLimits.retryMs);
    assert.equal((await stamped(service, leaf)).size, leaf + 1);
    assert.match((await logLine(place + 1)).msg, /is time stamped again/);
    place += 2;
  }
  authority.lie = 'SILENCE';
  const [leaf, asked] = [await service.file(), authority.asked()];
  await service.published(leaf);
  pass(service, everyMs);
  await eventually('a query', timeoutMs, () => authority.asked() > asked);
  pass(service, timeStampLimits.timeoutMs);
  assert.match((await logLine(place)).why, /no response within 10 seconds/);
  assert.equal(await stampFor(service, leaf), undefined);
});

test('without trusted authorities any certificate for time stamps is accepted', async (t) => {
  const authority = await startTimeStampAuthority(t);
  authority.lie = 'SELF_SIGNED';
  const { ARTSEAL_TLOG_TSA_CA: _, ...env } = settingsOf(authority);
  const service = await startPublishing(t, { env });
  assert.ok((await stamped(service, 0)).timeStamp.length > 0);
});
