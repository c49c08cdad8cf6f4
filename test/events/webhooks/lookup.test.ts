import assert from 'node:assert/strict';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { type TestContext, test } from 'node:test';
import { createLookUp } from '../../../src/events/webhooks/connect.ts';

/** What a name server answers: the data of records by their type, a response code, or nothing at all. */
type Zone = Readonly<
  Record<
    string,
    { readonly A?: readonly number[][]; readonly AAAA?: readonly number[][] } | 'SILENT' | number
  >
>;

const types: Readonly<Record<number, 'A' | 'AAAA'>> = { 1: 'A', 28: 'AAAA' };

/** A name server on UDP (RFC 1035); it knows nothing of names that are not in its zone. */
async function startNameServer(t: TestContext, zone: Zone) {
  const asked: string[] = [];
  const server = createSocket('udp4', (query, { port, address }) => {
    const { name, end } = readName(query);
    const type = types[query.readUInt16BE(end)] ?? 'A';
    asked.push(`${name} ${type}`);
    const entry = zone[name] ?? 3;
    if (entry === 'SILENT') return;
    const records = typeof entry === 'number' ? [] : (entry[type] ?? []);
    const head = Buffer.from(query.subarray(0, 12));
    head.writeUInt16BE(0x8180 | (typeof entry === 'number' ? entry : 0), 2);
    head.writeUInt16BE(records.length, 6);
    head.writeUInt32BE(0, 8);
    const answers = records.map((data) =>
      Buffer.from([0xc0, 12, ...query.subarray(end, end + 4), 0, 0, 0, 60, 0, data.length, ...data]),
    );
    server.send(Buffer.concat([head, query.subarray(12, end + 4), ...answers]), port, address);
  });
  server.bind(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  return { lookUp: createLookUp([`127.0.0.1:${server.address().port}`]), asked };
}

/** The name of a question, and where it ends. */
function readName(query: Buffer): { readonly name: string; readonly end: number } {
  const labels: string[] = [];
  let at = 12;
  for (let length = query[at] ?? 0; length > 0; length = query[at] ?? 0) {
    labels.push(query.toString('latin1', at + 1, at + 1 + length));
    at += 1 + length;
  }
  return { name: labels.join('.').toLowerCase(), end: at + 1 };
}

const never = new AbortController().signal;

test('the addresses of a name are those of IPv4 and of IPv6', async (t) => {
  const { lookUp } = await startNameServer(t, {
    'both.example': {
      A: [
        [192, 0, 2, 1],
        [10, 0, 0, 1],
      ],
      AAAA: [[0x20, 1, ...Array(13).fill(0), 1]],
    },
    'four.example': { A: [[192, 0, 2, 1]] },
    'six.example': { AAAA: [[...Array(15).fill(0), 1]] },
  });
  assert.deepEqual(await lookUp('both.example', never), ['192.0.2.1', '10.0.0.1', '2001::1']);
  assert.deepEqual(await lookUp('four.example', never), ['192.0.2.1']);
  assert.deepEqual(await lookUp('six.example', never), ['::1']);
});

test('only name servers are queried, for the unchanged name', async (t) => {
  const { lookUp, asked } = await startNameServer(t, {});
  await assert.rejects(lookUp('hooks', never));
  assert.deepEqual(asked.sort(), ['hooks A', 'hooks AAAA']);
});

test('the error of a name without address differs from that of a failed lookup', async (t) => {
  const { lookUp } = await startNameServer(t, { 'empty.example': {}, 'broken.example': 2 });
  for (const name of ['empty.example', 'unknown.example'])
    await assert.rejects(lookUp(name, never), { message: 'its host has no address' }, name);
  for (const name of ['broken.example', 'a..b', `${'a'.repeat(64)}.example`])
    await assert.rejects(lookUp(name, never), { message: 'its host could not be looked up' }, name);
});

test('the signal aborts the lookup at a silent server, which delays no other lookup', async (t) => {
  const { lookUp, asked } = await startNameServer(t, {
    'silent.example': 'SILENT',
    'four.example': { A: [[192, 0, 2, 1]] },
  });
  const timeout = new AbortController();
  const silent = Array.from({ length: 50 }, () => lookUp('silent.example', timeout.signal));
  const given = Promise.allSettled(silent);
  assert.deepEqual(await lookUp('four.example', never), ['192.0.2.1']);
  assert.ok(asked.includes('silent.example A'));
  timeout.abort();
  for (const outcome of await given) {
    assert.ok(outcome.status === 'rejected');
    assert.equal(outcome.reason.detail, 'queryA ECANCELLED silent.example');
  }
});
