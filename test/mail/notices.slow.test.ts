import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { type TestContext, test } from 'node:test';
import { ApiError } from '../../src/domain/reason.ts';
import { createMailer, sendMaxS } from '../../src/mail/mailer.ts';
import { createNotices } from '../../src/mail/notices.ts';
import { systemClock } from '../../src/operations/registry.ts';
import { executorOf } from '../../src/store/store.ts';
import { sqliteInThisThread } from '../store/engines.ts';
import { openStore, preRegistered } from '../store/promises/fixtures.ts';
import { tester } from '../support/audit-log.ts';
import { createManualClock } from '../support/clock.ts';
import { type SmtpServer, skipUnlessMailServer, startSmtpServer } from '../support/smtp-server.ts';

const skip = skipUnlessMailServer();
const never = new AbortController().signal;

/** A store with these addresses, and the function that sends their notices. */
async function deskOf(t: TestContext, mailServer: SmtpServer, emails: readonly string[], isShared = false) {
  const store = await openStore(t, sqliteInThisThread);
  for (const email of emails) await preRegistered(store, email);
  const execute = executorOf(store);
  const clock = createManualClock();
  const newSender = () => {
    const settings = { url: new URL(mailServer.url), passwordFile: undefined, from: 'a@registry.example' };
    const parts = { execute, clock, publicUrl: 'https://registry.example', newAttempt: randomUUID, isShared };
    return createNotices({ ...parts, mailer: createMailer(settings, systemClock) });
  };
  const states = async () => {
    const page = { from: undefined, size: 100 };
    const { items } = await execute({ kind: 'ListRegistrations', notice: undefined, page });
    return items.map(({ notice }) => notice ?? 'DUE');
  };
  const arrived = () => mailServer.mails().map(({ to }) => to);
  return { execute, clock, newSender, states, arrived };
}

const resultsOf = async (sending: AsyncIterable<{ readonly result: string }>) =>
  (await Array.fromAsync(sending)).map(({ result }) => result);

const rejectedAs = (reason: string, message: RegExp) => (error: unknown) =>
  error instanceof ApiError && error.reason === reason && message.test(error.message);

test('a mail that is not accepted for now ends the run, and the order holds', { skip }, async (t) => {
  const mailServer: SmtpServer = await startSmtpServer(t);
  const emails = ['one@example.com', 'later-two@example.com', 'three@example.com'];
  const { execute, newSender, states, arrived } = await deskOf(t, mailServer, emails);
  const send = newSender();
  const results: string[] = [];
  await assert.rejects(
    async () => {
      for await (const { result } of send(tester, never)) results.push(result);
    },
    rejectedAs(
      'UNAVAILABLE',
      /^The mail server did not accept the mail to rg_\w+: .*451 4\.7\.1 greylisted\. Solve that/,
    ),
  );
  assert.deepEqual([results, await states()], [['SENT'], ['SENT', 'DUE', 'DUE']]);
  const { items } = await execute({
    ...{ kind: 'ListRegistrations', notice: 'DUE', page: { from: undefined, size: 1 } },
  });
  const { registrationId = '' } = items[0] ?? {};
  await execute({ kind: 'MarkBounced', by: tester, registrationId, detail: 'skipped' });
  assert.deepEqual(await resultsOf(send(tester, never)), ['SENT']);
  assert.deepEqual(arrived(), ['one@example.com', 'three@example.com']);
});

test('a mail server that rejects one address after another ends the run', { skip }, async (t) => {
  const mailServer = await startSmtpServer(t);
  const emails = Array.from({ length: 12 }, (_, nth) => `unknown-${nth}@example.com`);
  const { newSender, states } = await deskOf(t, mailServer, emails);
  const send = newSender();
  await assert.rejects(
    resultsOf(send(tester, never)),
    rejectedAs(
      'UNAVAILABLE',
      /rejected 10 addresses in a row, the last one with: .*550 5\.1\.1 no such user/,
    ),
  );
  assert.deepEqual(await states(), [...Array(10).fill('BOUNCED'), 'DUE', 'DUE']);
  assert.deepEqual(await resultsOf(send(tester, never)), ['BOUNCED', 'BOUNCED']);
});

test('one run at a time: another one is rejected, and changes nothing', { skip }, async (t) => {
  const hold = Promise.withResolvers<void>();
  const reached = Promise.withResolvers<void>();
  const mailServer = await startSmtpServer(t, {
    atStep: (step) => {
      if (step !== 'DATA') return undefined;
      reached.resolve();
      return hold.promise;
    },
  });
  const { newSender, states } = await deskOf(t, mailServer, ['one@example.com', 'two@example.com']);
  const send = newSender();
  const first = resultsOf(send(tester, never));
  await reached.promise;
  await assert.rejects(resultsOf(send(tester, never)), rejectedAs('RATE_LIMITED', /^Notices are being sent/));
  assert.deepEqual(await states(), ['SENDING', 'DUE']);
  hold.resolve();
  assert.deepEqual(await first, ['SENT', 'SENT']);
});

test('a run of another process is not disturbed, and counts as over once its time is up', {
  skip,
}, async (t) => {
  const hold = Promise.withResolvers<void>();
  const reached = Promise.withResolvers<void>();
  const mailServer = await startSmtpServer(t, {
    atStep: (step, address) => {
      if (step !== 'STORED' || address !== 'one@example.com') return undefined;
      reached.resolve();
      return hold.promise;
    },
  });
  const emails = ['one@example.com', 'two@example.com'];
  const { clock, newSender, states, arrived } = await deskOf(t, mailServer, emails, true);
  const slow = resultsOf(newSender()(tester, never));
  await reached.promise;
  const other = newSender();
  clock.advance((sendMaxS - 1) * 1_000);
  await assert.rejects(resultsOf(other(tester, never)), rejectedAs('RATE_LIMITED', /./));
  clock.advance(1_000);
  assert.deepEqual(await resultsOf(other(tester, never)), ['UNKNOWN', 'SENT']);
  assert.deepEqual(await states(), ['UNKNOWN', 'SENT']);
  hold.resolve();
  // The result of the first attempt arrives late.
  assert.deepEqual(await slow, ['SENT']);
  assert.deepEqual(await states(), ['SENT', 'SENT']);
  assert.deepEqual(arrived(), emails);
});

test('a run that is cancelled ends after the address that is under way', { skip }, async (t) => {
  const leaving = new AbortController();
  const mailServer = await startSmtpServer(t, {
    atStep: (step) => {
      if (step === 'DATA') leaving.abort();
      return undefined;
    },
  });
  const { newSender, states } = await deskOf(t, mailServer, ['one@example.com', 'two@example.com']);
  const send = newSender();
  assert.deepEqual(await resultsOf(send(tester, leaving.signal)), ['SENT']);
  assert.deepEqual(await states(), ['SENT', 'DUE']);
  assert.deepEqual(await resultsOf(send(tester, never)), ['SENT']);
});
