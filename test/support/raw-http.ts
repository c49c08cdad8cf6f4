import { connect, isIP } from 'node:net';
import { connect as connectTls } from 'node:tls';
import type { RestAnswer } from './signed-request.ts';

/** The longest silence of the peer, in milliseconds. */
const silenceMaxMs = 60_000;

/** Options of a raw exchange. */
export interface RawExchange {
  /** The number of responses to wait for; fewer if the peer closes. */
  readonly count?: number;
  /** Half-closes the connection after the bytes. */
  readonly end?: boolean;
  /** Whether the request is HEAD: the response has a Content-Length and no body. */
  readonly head?: boolean;
  /** The address of this machine to connect from. */
  readonly from?: string;
}

export interface RawResult {
  readonly answers: readonly RestAnswer[];
  /** Whether the peer closed the connection before the last expected response. */
  readonly closed: boolean;
}

/**
 * Sends bytes, well-formed or not, over a new connection, with TLS to an https URL, and reads the responses. Interim responses
 * (1xx) count. Rejects if the peer neither responds nor closes.
 */
export function rawExchange(
  baseUrl: string,
  bytes: string | Uint8Array,
  { count = 1, end = false, head = false, from }: RawExchange = {},
): Promise<RawResult> {
  const { protocol, hostname, port } = new URL(baseUrl);
  const { promise, resolve, reject } = Promise.withResolvers<RawResult>();
  const local = from === undefined ? {} : { localAddress: from };
  const peer = { host: hostname, port: Number(port), allowHalfOpen: true, ...local };
  const socket =
    protocol === 'https:'
      ? connectTls(isIP(hostname) === 0 ? { ...peer, servername: hostname } : peer)
      : connect(peer);
  let received: Buffer = Buffer.alloc(0);
  const finish = (closed: boolean) => {
    socket.destroy();
    resolve({ answers: parseAnswers(received, head), closed });
  };
  socket.setTimeout(silenceMaxMs, () => {
    socket.destroy();
    reject(
      new Error(`No response and no end within ${silenceMaxMs} ms after: ${received.toString('latin1')}`),
    );
  });
  socket.on('data', (chunk: Buffer) => {
    received = Buffer.concat([received, chunk]);
    if (parseAnswers(received, head).length >= count) finish(false);
  });
  // A reset after a response must not hide the response.
  socket.on('error', () => finish(true)).on('end', () => finish(true));
  socket.write(typeof bytes === 'string' ? Buffer.from(bytes, 'latin1') : bytes);
  if (end) socket.end();
  return promise;
}

/** Sends bytes and reads one response. */
export async function rawAnswer(
  baseUrl: string,
  bytes: string | Uint8Array,
  options: RawExchange = {},
): Promise<RestAnswer> {
  const { answers } = await rawExchange(baseUrl, bytes, options);
  const [answer] = answers;
  if (answer === undefined) throw new Error('The peer closed the connection without a response.');
  return answer;
}

/** Returns the bytes of a request with these headers. */
export function rawRequest(
  method: string,
  target: string,
  headers: Record<string, string | readonly string[]>,
  body: string | Uint8Array = '',
  version = 'HTTP/1.1',
): Uint8Array {
  const lines = Object.entries(headers).flatMap(([name, values]) =>
    (typeof values === 'string' ? [values] : values).map((value) => `${name}: ${value}\r\n`),
  );
  const head = `${method} ${target} ${version}\r\n${lines.join('')}\r\n`;
  return Buffer.concat([Buffer.from(head, 'latin1'), Buffer.from(body)]);
}

function parseAnswers(received: Buffer, head: boolean): RestAnswer[] {
  const answers: RestAnswer[] = [];
  for (let at = 0; ; ) {
    const headEnd = received.indexOf('\r\n\r\n', at);
    if (headEnd < 0) return answers;
    const [statusLine = '', ...lines] = received.toString('latin1', at, headEnd).split('\r\n');
    const headers = Object.fromEntries(lines.map(splitHeader));
    const status = Number(statusLine.split(' ')[1]);
    const bodyBytes = head || status < 200 ? 0 : Number(headers['content-length'] ?? 0);
    const bodyEnd = headEnd + 4 + bodyBytes;
    if (received.length < bodyEnd) return answers;
    const text = received.toString('utf8', headEnd + 4, bodyEnd);
    const isJson = headers['content-type'] === 'application/json' && text !== '';
    answers.push({ status, headers, text, json: isJson ? JSON.parse(text) : undefined });
    at = bodyEnd;
  }
}

function splitHeader(line: string): [string, string] {
  const colon = line.indexOf(':');
  return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()];
}
