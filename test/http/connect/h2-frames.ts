import { openSocket } from '../../support/raw-talk.ts';

/** A frame as it came (RFC 9113, section 4.1). */
export interface Frame {
  readonly type: string;
  readonly endStream: boolean;
  readonly streamId: number;
  readonly payload: Buffer;
}

const types = ['DATA', 'HEADERS', 'PRIORITY', 'RST_STREAM', 'SETTINGS', 'PUSH_PROMISE', 'PING', 'GOAWAY'];
const endStreamFlag = 0x1;
const endHeadersFlag = 0x4;

/**
 * Sends a request over HTTP/2 as frames of its own making, and collects the frames of its stream as they come, up to
 * the one that ends it.
 */
export async function framesOfAnswer(
  baseUrl: string,
  headers: Record<string, string>,
  body: Uint8Array,
): Promise<Frame[]> {
  const socket = await openSocket(baseUrl);
  socket.write(
    Buffer.concat([
      Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'),
      frame(types.indexOf('SETTINGS'), 0, 0, Buffer.alloc(0)),
      frame(types.indexOf('HEADERS'), endHeadersFlag, 1, headerBlock(headers)),
      frame(types.indexOf('DATA'), endStreamFlag, 1, Buffer.from(body)),
    ]),
  );
  const frames: Frame[] = [];
  let received = Buffer.alloc(0);
  for await (const chunk of socket as AsyncIterable<Buffer>) {
    received = Buffer.concat([received, chunk]);
    for (;;) {
      const end = received.length < 9 ? Number.POSITIVE_INFINITY : 9 + received.readUIntBE(0, 3);
      if (received.length < end) break;
      const read = frameOf(received.subarray(0, end));
      received = received.subarray(end);
      if (read.streamId !== 1) continue;
      frames.push(read);
      if (read.endStream || read.type === 'RST_STREAM') return frames;
    }
  }
  throw new Error(`The connection ended after ${JSON.stringify(frames)}.`);
}

function frame(type: number, flags: number, streamId: number, payload: Buffer): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head.writeUInt8(type, 3);
  head.writeUInt8(flags, 4);
  head.writeUInt32BE(streamId, 5);
  return Buffer.concat([head, payload]);
}

function frameOf(bytes: Buffer): Frame {
  const type = types[bytes.readUInt8(3)] ?? 'another';
  const hasEnd = type === 'DATA' || type === 'HEADERS';
  return {
    type,
    endStream: hasEnd && (bytes.readUInt8(4) & endStreamFlag) !== 0,
    streamId: bytes.readUInt32BE(5),
    payload: bytes.subarray(9),
  };
}

/** Header fields as literals without indexing (RFC 7541, section 6.2.2); names and values of less than 127 bytes. */
function headerBlock(headers: Record<string, string>): Buffer {
  const text = (value: string) => Buffer.concat([Buffer.from([value.length]), Buffer.from(value, 'latin1')]);
  const fields = Object.entries(headers).map(([name, value]) => [Buffer.from([0]), text(name), text(value)]);
  return Buffer.concat(fields.flat());
}
