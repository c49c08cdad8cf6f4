import { openSocket } from '../../support/raw-talk.ts';
import { frame, frameTypes, openWindow, requestHeaders } from './raw-http2.ts';

/** A received frame (RFC 9113, section 4.1). */
export interface Frame {
  readonly type: string;
  readonly endStream: boolean;
  readonly streamId: number;
  readonly payload: Buffer;
}

const types = ['DATA', 'HEADERS', 'PRIORITY', 'RST_STREAM', 'SETTINGS', 'PUSH_PROMISE', 'PING', 'GOAWAY'];
const endStreamFlag = 0x1;

/**
 * Sends a request over HTTP/2 as raw frames; returns the frames of its stream, up to the one that ends it.
 */
export async function framesOfAnswer(
  baseUrl: string,
  headers: Record<string, string>,
  body: Uint8Array,
): Promise<Frame[]> {
  const socket = await openSocket(baseUrl);
  const data = frame(frameTypes.data, endStreamFlag, 1, body);
  socket.write(Buffer.concat([openWindow, requestHeaders(1, headers, { isLast: false }), data]));
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
