import { createHmac, createSecretKey, hash, timingSafeEqual } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { openDatabase } from '../src/store/sqlite/database.ts';
import { type BenchKey, readKeys } from './keys.ts';

// The floor: the promises of a signed call, kept by hand-written code and nothing else. It opens the database as
// the service does, so that pragmas, tables, triggers and indexes are the same; the rest is the bare driver.

const [, , dataDir = '.'] = process.argv;
const { $client: sqlite } = openDatabase({
  dataDir,
  environment: 'sandbox',
  currency: 'CNY',
  opening: 'EXISTING',
});
const keys = new Map(
  readKeys(dataDir).map((key) => [key.apiKey, { ...key, secret: createSecretKey(key.apiSecret, 'utf8') }]),
);

const begin = sqlite.prepare('BEGIN IMMEDIATE');
const commit = sqlite.prepare('COMMIT');
// One window for ever: the primary key alone makes a nonce good for one request.
const claimNonce = sqlite.prepare('INSERT OR IGNORE INTO nonce_claim VALUES (0, ?, ?, ?)');
const countCall = sqlite.prepare(
  'INSERT INTO usage VALUES (?, ?, 1) ON CONFLICT DO UPDATE SET calls = calls + 1 WHERE calls < ?',
);
const nextNumber = sqlite
  .prepare(
    `INSERT INTO number_sequence VALUES ('FILING', ?, 1) ON CONFLICT DO UPDATE SET last = last + 1 RETURNING last`,
  )
  .pluck();
const insertFiling = sqlite.prepare('INSERT INTO filing VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)');
const insertRecord = sqlite.prepare(`INSERT INTO provenance_record VALUES (?, 1, 'SUBMITTED', ?, ?)`);
const selectAuthor = sqlite.prepare('SELECT author FROM filing WHERE filing_no = ?').pluck();
const selectRecords = sqlite.prepare(
  'SELECT event, at FROM provenance_record WHERE filing_no = ? ORDER BY position',
);

/** Answers that wait for the commit of their turn of the event loop. */
let waiting: { response: ServerResponse; status: number; body: string }[] = [];

function answer(request: IncomingMessage, body: Buffer, response: ServerResponse): void {
  if (waiting.length === 0) {
    begin.run();
    setImmediate(settle);
  }
  const { status, value } = carryOut(request, body);
  waiting.push({ response, status, body: JSON.stringify(value) });
}

function settle(): void {
  const settled = waiting;
  waiting = [];
  commit.run();
  for (const { response, status, body } of settled) {
    const headers = { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(body) };
    response.writeHead(status, headers).end(body);
  }
}

function carryOut(request: IncomingMessage, body: Buffer): { status: number; value: object } {
  const { method = '', url = '', headers } = request;
  const nonce = String(headers['x-nonce']);
  const key = keys.get(String(headers['x-api-key']));
  const message = `${method}${url}${hash('sha256', body, 'hex')}${headers['x-timestamp']}${nonce}`;
  const sent = Buffer.from(String(headers['x-signature']), 'hex');
  if (key === undefined || !timingSafeEqual(createHmac('sha256', key.secret).update(message).digest(), sent))
    return { status: 401, value: {} };
  const nowS = Math.floor(Date.now() / 1000);
  const timestamp = `${new Date(nowS * 1000).toISOString().slice(0, 19)}+00:00`;
  if (claimNonce.run(key.id, nonce, nowS).changes === 0) return { status: 409, value: {} };
  if (countCall.run(key.callerId, timestamp.slice(0, 7), Number.MAX_SAFE_INTEGER).changes === 0)
    return { status: 429, value: {} };
  const value = method === 'POST' ? file(JSON.parse(body.toString()), key, timestamp, nowS) : provenance(url);
  return { status: value === undefined ? 404 : 200, value: value ?? {} };
}

interface SentArtwork {
  readonly author: string;
  readonly era: string;
  readonly size: string;
  readonly material: string;
  readonly condition: string;
  readonly price: number;
}

function file(artwork: SentArtwork, { callerId }: BenchKey, timestamp: string, nowS: number): object {
  const { author, era, size, material, condition, price } = artwork;
  const year = timestamp.slice(0, 4);
  const filingNo = `AS-${year}-${String(nextNumber.get(Number(year))).padStart(6, '0')}`;
  const evidence = { author, condition, era, filingNo, material, price, size, timestamp };
  const digest = hash('sha256', JSON.stringify(evidence), 'hex');
  const texts = [author, era, size, material, condition] as const;
  insertFiling.run(filingNo, callerId, ...texts, price, digest, timestamp, nowS);
  insertRecord.run(filingNo, timestamp.slice(0, 10), nowS);
  const chain =
    'Evidence chain under selection: no chain and no judicial-evidence capability is established.';
  return { filingNo, status: 'SUBMITTED', chain, hash: digest, timestamp };
}

function provenance(url: string): object | undefined {
  const filingNo = url.slice(url.lastIndexOf('/') + 1);
  const author = selectAuthor.get(filingNo);
  return author === undefined
    ? undefined
    : { filingNo, author, records: selectRecords.all(filingNo), retentionYears: 5 };
}

const server = createServer((request, response) => {
  const chunks: Buffer[] = [];
  request.on('data', (chunk: Buffer) => chunks.push(chunk));
  request.on('end', () =>
    answer(request, chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks), response),
  );
});
server.listen(0, '127.0.0.1');
await once(server, 'listening');
process.stdout.write(`floor ready public=http://127.0.0.1:${(server.address() as AddressInfo).port}\n`);
process.once('SIGTERM', () => {
  sqlite.close();
  process.exit(0);
});
