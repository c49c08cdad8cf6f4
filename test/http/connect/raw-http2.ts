/** A frame of HTTP/2 (RFC 9113 section 4.1). */
export function frame(type: number, flags: number, stream: number, payload: Uint8Array): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head.set([type, flags], 3);
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

export const frameTypes = {
  data: 0,
  headers: 1,
  rstStream: 3,
  settings: 4,
  ping: 6,
  goAway: 7,
  windowUpdate: 8,
  continuation: 9,
} as const;
const frameBytesMax = 16_384;
export const endStream = 1;
const endHeaders = 4;

const preface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');

/** The first bytes of a client that keeps all settings. */
export const openWindow = Buffer.concat([preface, frame(frameTypes.settings, 0, 0, Buffer.alloc(0))]);

/** The first bytes of a client that accepts no byte of a response's body. */
export const closedWindow = Buffer.concat([
  preface,
  // INITIAL_WINDOW_SIZE is 0.
  frame(frameTypes.settings, 0, 0, Buffer.from([0, 4, 0, 0, 0, 0])),
]);

/** The headers of a request, each as a literal without indexing (RFC 7541 section 6.2.2). */
export function requestHeaders(
  stream: number,
  headers: Record<string, string>,
  { isLast = true } = {},
): Buffer {
  const fields = Object.entries(headers).map((field) => [Buffer.from([0]), ...field.map(literal)]);
  const block = Buffer.concat(fields.flat());
  const frames: Buffer[] = [];
  for (let at = 0; at < block.length; at += frameBytesMax) {
    const type = at === 0 ? frameTypes.headers : frameTypes.continuation;
    const flags = (at + frameBytesMax < block.length ? 0 : endHeaders) | (at === 0 && isLast ? endStream : 0);
    frames.push(frame(type, flags, stream, block.subarray(at, at + frameBytesMax)));
  }
  return Buffer.concat(frames);
}

/** A string of less than 16,511 bytes, without Huffman coding (RFC 7541 sections 5.1 and 5.2). */
function literal(text: string): Buffer {
  const { length } = text;
  const over = length - 127;
  const prefix = over < 0 ? [length] : over < 128 ? [127, over] : [127, 128 | (over & 127), over >> 7];
  return Buffer.concat([Buffer.from(prefix), Buffer.from(text, 'latin1')]);
}

/** A part of a request's body, not the last. */
export const bodyPiece = (stream: number, bytes: number): Buffer =>
  frame(frameTypes.data, 0, stream, Buffer.alloc(bytes).fill('x'));

/** A PING; the server answers it once it has read everything before it. */
export const ping = frame(frameTypes.ping, 0, 0, Buffer.from('readsofa'));

/** The head of a PING of the server. */
export const pingHead = ping.subarray(0, 9);

/** The response to `ping`. */
export const pong = frame(frameTypes.ping, 1, 0, Buffer.from('readsofa'));

/** The complete frames in bytes that begin with a frame. */
export function framesIn(bytes: Buffer): { type: number; stream: number; isLast: boolean }[] {
  const end = bytes.length < 9 ? Number.POSITIVE_INFINITY : 9 + bytes.readUIntBE(0, 3);
  if (bytes.length < end) return [];
  const type = bytes.readUInt8(3);
  const hasEnd = type === frameTypes.data || type === frameTypes.headers;
  const isLast = hasEnd && (bytes.readUInt8(4) & endStream) !== 0;
  return [{ type, stream: bytes.readUInt32BE(5), isLast }, ...framesIn(bytes.subarray(end))];
}
