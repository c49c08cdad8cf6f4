import { createServer } from 'node:http';
import { buffer } from 'node:stream/consumers';
import type { TestContext } from 'node:test';
import { BinaryReader, WireType } from '@bufbuild/protobuf/wire';
import { listenLocally } from '../support/local-server.ts';

/** A span as it was sent. */
export interface SentSpan {
  readonly service: string;
  readonly traceId: string;
  readonly spanId: string;
  /** '' for none. */
  readonly parentSpanId: string;
  readonly name: string;
  /** 2 is a server's, 3 a client's. */
  readonly kind: number;
  readonly attributes: Readonly<Record<string, string | number>>;
  /** 2 is an error. */
  readonly status: number;
}

/** Takes spans over OTLP/HTTP in Protobuf at `url`, which ends without a path; all that came so far. */
export async function startCollector(t: TestContext) {
  const spans: SentSpan[] = [];
  const requests: { readonly path: string; readonly type: string; readonly bytes: Uint8Array }[] = [];
  const server = createServer(async (request, response) => {
    const bytes = await buffer(request);
    requests.push({ path: request.url ?? '', type: request.headers['content-type'] ?? '', bytes });
    spans.push(...spansIn(bytes));
    response.writeHead(200, { 'Content-Type': 'application/x-protobuf' }).end();
  });
  const url = await listenLocally(t, server, () => server.closeAllConnections());
  return { url, spans, requests };
}

type Field = Uint8Array | number | bigint;

/** The fields of a message of Protobuf, by number, of those wire types that OTLP has. */
function fieldsOf(bytes: Uint8Array): Map<number, Field[]> {
  const reader = new BinaryReader(bytes);
  const fields = new Map<number, Field[]>();
  while (reader.pos < reader.len) {
    const [number, type] = reader.tag();
    fields.set(number, [...(fields.get(number) ?? []), fieldOf(reader, type)]);
  }
  return fields;
}

function fieldOf(reader: BinaryReader, type: WireType): Field {
  if (type === WireType.LengthDelimited) return reader.bytes();
  if (type === WireType.Bit64) return BigInt(reader.fixed64());
  if (type === WireType.Bit32) return reader.fixed32();
  return Number(reader.int64());
}

const messages = (bytes: Uint8Array, number: number) => (fieldsOf(bytes).get(number) ?? []) as Uint8Array[];
const bytesIn = (bytes: Uint8Array, number: number) => Buffer.from(messages(bytes, number)[0] ?? []);
const numberIn = (bytes: Uint8Array, number: number) => Number(fieldsOf(bytes).get(number)?.[0] ?? 0);

/** Attributes, whose values are texts or integers. */
function attributesIn(bytes: Uint8Array, number: number): Record<string, string | number> {
  const pairs = messages(bytes, number).map((pair) => {
    const value = fieldsOf(bytesIn(pair, 2));
    const text = value.get(1)?.[0] as Uint8Array | undefined;
    return [bytesIn(pair, 1).toString(), text ? Buffer.from(text).toString() : Number(value.get(3)?.[0])];
  });
  return Object.fromEntries(pairs);
}

/** By the numbers of ExportTraceServiceRequest and what is in it. */
function spansIn(request: Uint8Array): SentSpan[] {
  return messages(request, 1).flatMap((resourceSpans) => {
    const service = String(attributesIn(bytesIn(resourceSpans, 1), 1)['service.name']);
    const spans = messages(resourceSpans, 2).flatMap((scopeSpans) => messages(scopeSpans, 2));
    return spans.map((span) => ({
      service,
      traceId: bytesIn(span, 1).toString('hex'),
      spanId: bytesIn(span, 2).toString('hex'),
      parentSpanId: bytesIn(span, 4).toString('hex'),
      name: bytesIn(span, 5).toString(),
      kind: numberIn(span, 6),
      attributes: attributesIn(span, 9),
      status: numberIn(bytesIn(span, 15), 3),
    }));
  });
}
