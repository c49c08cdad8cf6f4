import { once } from 'node:events';
import { connect, type Socket } from 'node:net';

/** Bytes that are read from a connection at a time; a longer answer is put together. */
const readBytes = 16_384;

/** An answer: its status, its bytes until the next ones are read, and where its body starts in them. */
export interface Answer {
  readonly status: number;
  readonly bytes: Buffer;
  readonly bodyStart: number;
}

/** A connection with one request in flight. */
export interface Connection {
  readonly socket: Socket;
  /** Sends a request; `answered` is called once with its answer. */
  send(request: Buffer, answered: (answer: Answer) => void): void;
}

/** Opens a connection, whose bytes come in one buffer, without the machinery of a stream. `failed` is called if it breaks. */
export async function open(port: number, failed: (error: Error) => void): Promise<Connection> {
  const buffer = Buffer.allocUnsafe(readBytes);
  let answered: (answer: Answer) => void = () => {};
  let received: Buffer | undefined;

  function receive(chunk: Buffer): void {
    const bytes = received === undefined ? chunk : Buffer.concat([received, chunk]);
    const answer = readAnswer(bytes);
    // The next bytes come in the same buffer.
    received = answer === undefined ? Buffer.from(bytes) : undefined;
    if (answer !== undefined) answered(answer);
  }

  const callback = (length: number) => {
    try {
      receive(buffer.subarray(0, length));
    } catch (error) {
      failed(error as Error);
    }
    return true;
  };
  const socket = connect({ host: '127.0.0.1', port, noDelay: true, onread: { buffer, callback } });
  await once(socket, 'connect');
  socket.on('error', failed);
  socket.on('close', () => failed(new Error('The server closed a connection.')));
  return {
    socket,
    send: (request, then) => {
      answered = then;
      socket.write(request);
    },
  };
}

/** The answer at the beginning of these bytes, or undefined while some of it is still to come. */
function readAnswer(bytes: Buffer): Answer | undefined {
  const headEnd = bytes.indexOf('\r\n\r\n');
  if (headEnd < 0) return undefined;
  const head = bytes.toString('latin1', 0, headEnd);
  const length = /\r\ncontent-length: (\d+)/i.exec(head)?.[1];
  if (length === undefined) throw new Error(`An answer without Content-Length: ${head}`);
  const bodyStart = headEnd + 4;
  if (bytes.length < bodyStart + Number(length)) return undefined;
  return { status: Number(head.slice(9, 12)), bytes, bodyStart };
}
