import assert from 'node:assert/strict';
import { test } from 'node:test';
import { time } from '../../store/promises/fixtures.ts';
import { fileScope } from '../../support/file-scope.ts';
import { startService } from '../../support/service.ts';
import { send } from '../../support/signed-request.ts';

/** The longest page with more than one item, as JSON. */
const pageBytesMax = 256 * 1_024;

/** Texts whose JSON is as long as possible: characters of four bytes, or with an escape. */
const longest = (length: number, nth: number): string => (nth % 2 === 0 ? '🖌' : '"').repeat(length);

const service = await startService(fileScope);
const { execute } = service;
const gallery = await service.platform();
const token = await service.token(true);

type Page = Readonly<Record<string, unknown>> & { readonly nextPageToken: string };

/** Reads a page from the internal API, as JSON. */
async function ask(method: string, pageToken: string): Promise<string> {
  const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' };
  const body = JSON.stringify({ pageSize: 100, pageToken });
  return (
    await fetch(`${service.internalUrl}/artseal.v1.${method}`, { method: 'POST', headers, body })
  ).text();
}

/** Reads a page from the public API. */
async function get(target: string, pageToken: string): Promise<string> {
  const query = `?pageSize=100${pageToken === '' ? '' : `&pageToken=${pageToken}`}`;
  return (await send(service.publicUrl, gallery, { target: `${target}${query}` })).text;
}

/** Reads all pages of a list, asserts that none is too long or empty, and returns the ids and how many items each page had. */
async function pagesOf(read: (pageToken: string) => Promise<string>, items: string, id: string) {
  const ids = new Set<unknown>();
  const counts: number[] = [];
  let pageToken = '';
  do {
    const text = await read(pageToken);
    const page = JSON.parse(text) as Page;
    const found = (page[items] ?? []) as readonly Record<string, unknown>[];
    assert.ok(found.length > 0, text);
    assert.ok(Buffer.byteLength(text) <= pageBytesMax, `${Buffer.byteLength(text)} bytes`);
    counts.push(found.length);
    for (const item of found) ids.add(item[id]);
    pageToken = page.nextPageToken ?? '';
  } while (pageToken !== '');
  return { ids, counts };
}

test('pages of filings have at most 256 KiB, and lead to all filings', async () => {
  const by = (await execute({ kind: 'FindPlatform', name: gallery.caller })) ?? assert.fail();
  const now = Date.now();
  const at = time(`${new Date(now).toISOString().slice(0, 19)}+00:00`);
  for (let nth = 0; nth < 60; nth += 1) {
    const [short, long] = [longest(200, nth), longest(2_000, nth)];
    const large = { author: short, era: short, size: short, material: short, condition: long, price: 1n };
    await execute({ kind: 'FileArtwork', artwork: large, at, by });
  }
  const readings = {
    'REST, own': (pageToken: string) => get('/api/v1/filing', pageToken),
    'Connect, of all': (pageToken: string) => ask('FilingService/ListFilings', pageToken),
  };
  for (const [what, read] of Object.entries(readings)) {
    const { ids, counts } = await pagesOf(read, 'filings', 'filingNo');
    assert.equal(ids.size, 60, what);
    // Half of the filings have 11 KiB, the others half as much.
    assert.ok(
      counts.slice(0, -1).every((count) => count >= 20 && count < 50),
      `${what}: ${counts}`,
    );
  }
});
