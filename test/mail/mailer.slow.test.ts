import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { createMailer } from '../../src/mail/mailer.ts';
import { noticeTo } from '../../src/mail/notice.ts';
import { systemClock } from '../../src/operations/registry.ts';
import { type SmtpServer, skipUnlessMailServer, startSmtpServer } from '../support/smtp-server.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const skip = skipUnlessMailServer();
const from = 'registry@registry.example';

function mailerFor(t: TestContext, url: string, password?: string) {
  const passwordFile = password === undefined ? undefined : join(temporaryFolder(t), 'password');
  if (passwordFile !== undefined) writeFileSync(passwordFile, `${password}\n`);
  const mailer = createMailer({ url: new URL(url), passwordFile, from }, systemClock);
  t.after(mailer.close);
  return mailer;
}

const mailTo = (to: string) => ({ to, subject: '开放 / open', text: '您好\n\n.dot\n', id: 'rg_1' });

test('a mail has the text in both languages, a stable id, and is marked as automatic', {
  skip,
}, async (t) => {
  const server = await startSmtpServer(t);
  const mailer = mailerFor(t, server.url);
  const registered = { registrationId: 'rg_1', email: 'one@example.com' } as Parameters<typeof noticeTo>[0];
  const sent = await mailer.send(noticeTo(registered, 'https://registry.example'));
  assert.deepEqual(sent, { result: 'SENT', detail: '250 2.0.0 queued' });
  const [mail, ...more] = server.mails();
  const { from: sender, to, headers = {}, text = '' } = mail ?? {};
  assert.deepEqual([sender, to, more], [from, 'one@example.com', []]);
  assert.equal(headers.from, from);
  assert.equal(headers.to, 'one@example.com');
  assert.equal(headers.subject, '自助注册现已开放 / Self-service registration is open');
  assert.equal(headers['message-id'], '<rg_1@registry.example>');
  assert.equal(headers['auto-submitted'], 'auto-generated');
  assert.match(headers['content-type'] ?? '', /^text\/plain/);
  assert.match(text, /自助注册与自助签发密钥现已开放：\r?\nhttps:\/\/registry\.example\r?\n/);
  assert.match(text, /are now open:\r?\nhttps:\/\/registry\.example\r?\n/);
});

test('the replies of a mail server say what became of a mail', { skip }, async (t) => {
  const server = await startSmtpServer(t);
  const mailer = mailerFor(t, server.url);
  const expected = [
    ['one@example.com', 'SENT', /^250/],
    ['unknown-1@example.com', 'BOUNCED', /550 5\.1\.1 no such user/],
    ['misspelt-1@example.com', 'BOUNCED', /501 5\.1\.3 bad recipient address syntax/],
    ['full-1@example.com', 'BOUNCED', /552 5\.2\.2 mailbox full/],
    ['two@example.com', 'SENT', /^250/],
    ['later-1@example.com', 'NOT_SENT', /451 4\.7\.1 greylisted/],
    ['policy-1@example.com', 'NOT_SENT', /554 5\.7\.1 relay access denied/],
    ['quota-1@example.com', 'NOT_SENT', /550 5\.4\.5 daily sending quota exceeded/],
    ['broken-1@example.com', 'UNKNOWN', /./],
    ['three@example.com', 'SENT', /^250/],
  ] as const;
  for (const [to, result, detail] of expected) {
    const sent = await mailer.send(mailTo(to));
    assert.equal(sent.result, result, `${to}: ${sent.detail}`);
    assert.match(sent.detail, detail);
  }
  assert.deepEqual(
    server.mails().map(({ to }) => to),
    expected.filter(([, result]) => result === 'SENT').map(([to]) => to),
  );
});

test('mails share a session, which ends after fifty', { skip }, async (t) => {
  let sessions = 0;
  const server = await startSmtpServer(t, {
    atStep: (step) => {
      if (step === 'CONNECT') sessions += 1;
      return undefined;
    },
  });
  const mailer = mailerFor(t, server.url);
  for (let nth = 0; nth < 51; nth += 1)
    assert.equal((await mailer.send(mailTo(`n${nth}@example.com`))).result, 'SENT');
  assert.equal(sessions, 2);
  assert.equal(server.mails().length, 51);
});

test('the user logs in with the password of the file', { skip }, async (t) => {
  const server = await startSmtpServer(t, { password: 'geheim' });
  assert.equal((await mailerFor(t, server.url, 'geheim').send(mailTo('one@example.com'))).result, 'SENT');
  const wrong = mailerFor(t, server.url, 'falsch');
  await assert.rejects(
    wrong.open(),
    /^Error: the mail server 127\.0\.0\.1:\d+ cannot be used: Invalid login/,
  );
  const sent = await wrong.send(mailTo('two@example.com'));
  assert.equal(sent.result, 'NOT_SENT');
  assert.doesNotMatch(sent.detail, /falsch/);
  assert.equal(server.mails().length, 1);
});

test('a mail server that is gone has not accepted the mail', { skip }, async (t) => {
  const server: SmtpServer = await startSmtpServer(t, {
    atStep: (step, address) => (step === 'RCPT' && address === 'two@example.com' ? server.kill() : undefined),
  });
  const mailer = mailerFor(t, server.url);
  assert.equal((await mailer.send(mailTo('one@example.com'))).result, 'SENT');
  const gone = await mailer.send(mailTo('two@example.com'));
  assert.equal(gone.result, 'NOT_SENT');
  assert.match(gone.detail, /^the mail server 127\.0\.0\.1:\d+ cannot be used: .*(ECONNREFUSED|ECONNRESET)/);
});

test('a mail server that ends in the text of a mail may have accepted it', { skip }, async (t) => {
  const server: SmtpServer = await startSmtpServer(t, {
    atStep: (step) => (step === 'STORED' ? server.kill() : undefined),
  });
  const sent = await mailerFor(t, server.url).send(mailTo('one@example.com'));
  assert.equal(sent.result, 'UNKNOWN');
  assert.equal(server.mails().length, 1);
});
