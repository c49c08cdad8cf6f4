import { readFileSync } from 'node:fs';
import { Readable } from 'node:stream';
import type SMTPConnection from 'nodemailer/lib/smtp-connection';
import type { Clock } from '../domain/clock.ts';
import { isLoopback } from '../lib/networks.ts';
import { withTimeout } from '../lib/timing.ts';

/** The mail server, and who its mails are from. */
export interface MailSettings {
  /** smtp://USER@HOST:PORT, or smtps:// for TLS from the start; without a password. */
  readonly url: URL;
  /** File with the password of the user, which is read for each session; undefined without a user. */
  readonly passwordFile: string | undefined;
  /** An e-mail address. */
  readonly from: string;
}

/** A mail of plain text to one address. */
export interface Mail {
  readonly to: string;
  readonly subject: string;
  readonly text: string;
  /** What precedes the @ of its Message-ID. */
  readonly id: string;
}

/**
 * What became of a mail, and what the mail server said. SENT: the mail server has accepted it. BOUNCED: it rejects this address for good.
 * NOT_SENT: it has certainly not accepted the mail. UNKNOWN: the session broke after the text of the mail was begun.
 */
export interface MailResult {
  readonly result: 'SENT' | 'BOUNCED' | 'NOT_SENT' | 'UNKNOWN';
  readonly detail: string;
}

/** Sends mails over SMTP, one after the other. */
export type Mailer = ReturnType<typeof createMailer>;

/**
 * Time limits, in milliseconds: of opening a session, and of one mail. Mail servers may check a mail for minutes before they respond to
 * its end (RFC 5321, 4.5.3.2.6).
 */
const timeouts = { open: 60_000, mail: 300_000 } as const;

/** The longest time from `send` to its result, in seconds: of a mail in an old session, and once more in a new one. */
export const sendMaxS = (2 * (timeouts.open + timeouts.mail)) / 1_000;

/** Mails that one session sends. Mail servers have limits of their own. */
const mailsPerSession = 50;

/** An open session that accepts mails. */
interface Session {
  readonly connection: SMTPConnection;
  sent: number;
}

/** Creates a mailer. It needs TLS unless the mail server is on this machine. */
export function createMailer(settings: MailSettings, clock: Pick<Clock, 'after' | 'nowMs'>) {
  let session: Session | undefined;

  function close(): void {
    session?.connection.quit();
    session = undefined;
  }

  /** Opens a session, unless one is open. Rejects if the mail server cannot be used. */
  async function open(): Promise<Session> {
    if (session !== undefined && session.sent >= mailsPerSession) close();
    session ??= { connection: await openSession(settings, clock), sent: 0 };
    return session;
  }

  /** Sends a mail in the open session, which ends unless the mail server accepts the mail. */
  async function attempt(mail: Mail, data: Buffer): Promise<MailResult> {
    const { connection } = await open();
    const result = await deliver(connection, { from: settings.from, to: mail.to }, data, clock);
    if (result.result === 'SENT') (session as Session).sent += 1;
    else {
      session = undefined;
      connection.close();
    }
    return result;
  }

  return {
    /** Opens a session, unless one is open. Rejects with an Error that says why the mail server cannot be used. */
    open: async (): Promise<void> => void (await open()),
    /** Sends a mail. If an old session does not accept it, sends it in a new one. Never rejects. */
    send: async (mail: Mail): Promise<MailResult> => {
      try {
        const data = await composed(mail, settings.from, clock.nowMs());
        const isOld = session !== undefined && session.sent > 0;
        const first = await attempt(mail, data);
        return first.result === 'NOT_SENT' && isOld ? await attempt(mail, data) : first;
      } catch (error) {
        return { result: 'NOT_SENT', detail: (error as Error).message };
      }
    },
    /** Ends the session. */
    close,
  };
}

/** Opens a session and logs in. Rejects with an Error that names the mail server. */
async function openSession(
  { url, passwordFile }: MailSettings,
  clock: Pick<Clock, 'after'>,
): Promise<SMTPConnection> {
  // Few deployments need this module.
  const { default: Connection } = await import('nodemailer/lib/smtp-connection');
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1');
  const isSecure = url.protocol === 'smtps:';
  const isLocal = host === 'localhost' || isLoopback(host);
  const connection = new Connection({
    ...{ host, secure: isSecure, requireTLS: !isSecure && !isLocal },
    // Mail servers on the same machine offer TLS with a certificate that nobody signed.
    ignoreTLS: isLocal,
    port: url.port === '' ? (isSecure ? 465 : 587) : Number(url.port),
    ...{ connectionTimeout: timeouts.open, greetingTimeout: timeouts.open, socketTimeout: timeouts.mail },
  });
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  // It also reports what ends the session later, which `send` reports as well.
  connection.on('error', reject);
  connection.connect((failure) => {
    if (failure) reject(failure);
    else if (url.username === '') resolve();
    else logIn(connection, decodeURIComponent(url.username), passwordFile).then(resolve, reject);
  });
  try {
    const limit = { ms: timeouts.open, reason: new Error('it took too long to connect') };
    await withTimeout(clock, limit, () => promise);
    return connection;
  } catch (error) {
    connection.close();
    throw new Error(`the mail server ${url.host} cannot be used: ${(error as Error).message}`);
  }
}

async function logIn(connection: SMTPConnection, user: string, passwordFile = ''): Promise<void> {
  const pass = readFileSync(passwordFile, 'utf8').trimEnd();
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  connection.login({ credentials: { user, pass } }, (error) => (error ? reject(error) : resolve()));
  await promise;
}

/** Makes the bytes of a mail. */
async function composed({ to, subject, text, id }: Mail, from: string, nowMs: number): Promise<Buffer> {
  const { default: Composer } = await import('nodemailer/lib/mail-composer');
  const composer = new Composer({
    ...{ from, to, subject, text, date: new Date(nowMs), xMailer: false },
    messageId: `<${id}@${from.split('@')[1]}>`,
    headers: { 'Auto-Submitted': 'auto-generated' },
    ...{ disableFileAccess: true, disableUrlAccess: true },
  });
  return composer.compile().build();
}

/** Sends the bytes of a mail in a session. Never rejects. */
async function deliver(
  connection: SMTPConnection,
  envelope: { readonly from: string; readonly to: string },
  data: Buffer,
  clock: Pick<Clock, 'after'>,
): Promise<MailResult> {
  let isBegun = false;
  // Read only after the mail server has said that it takes the text of the mail.
  const text = Readable.from(
    (function* () {
      isBegun = true;
      yield data;
    })(),
  );
  const sending = Promise.withResolvers<string>();
  connection.send(envelope, text, (error, info) => {
    if (error) sending.reject(error);
    else sending.resolve(info?.response ?? '');
  });
  const limit = { ms: timeouts.mail, reason: new Error('the mail server took too long') };
  try {
    return { result: 'SENT', detail: await withTimeout(clock, limit, () => sending.promise) };
  } catch (error) {
    return { result: resultOf(error as SmtpError, isBegun), detail: (error as Error).message };
  }
}

/** An error of the library. */
type SmtpError = Error & {
  readonly responseCode?: number;
  readonly command?: string;
  readonly code?: string;
};

/** Commands and replies that are about the address of the mail; others are about the session. */
const aboutAddress: Readonly<Record<string, string>> = { 'RCPT TO': 'EENVELOPE', DATA: 'EMESSAGE' };

/**
 * Codes and enhanced codes of a server that rejects the sender, its quota, the text or the session, whatever the address (RFC 5321, 4.2;
 * RFC 3463): 5.1.7 and 5.1.8 are about the sender, 5.4.5 is a quota, and 5.3, 5.5, 5.6 and 5.7 are about system, protocol, text, policy.
 */
const aboutSender = /^\d{3}[ -]5\.(1\.[78]|4\.5|[3567]\.\d+)\b|^5(0[0234]|21|30|35|38)\b/;

function resultOf(error: SmtpError & { readonly response?: string }, isBegun: boolean): MailResult['result'] {
  const { responseCode, command = '', code, response = '' } = error;
  // A reply that broke off is no reply.
  const status = command === 'CONN' ? undefined : responseCode;
  if (status === undefined || status < 400) return isBegun ? 'UNKNOWN' : 'NOT_SENT';
  if (status < 500 || aboutAddress[command] !== code || aboutSender.test(response)) return 'NOT_SENT';
  return 'BOUNCED';
}
