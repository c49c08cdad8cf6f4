import assert from 'node:assert/strict';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { executable } from '../support/artseal-command.ts';
import { issueInto } from '../support/issued.ts';
import { artwork } from '../support/samples.ts';
import { type RestAnswer, send } from '../support/signed-request.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { typedCall } from '../support/typed-json.ts';
import { serveWatched } from '../support/watched-command.ts';

const preloaded = join(import.meta.dirname, 'children', 'failing-thread.ts');
const failed = 1;
/** The number of filings before the thread fails. */
const filings = 20;
/** Far longer than the end of a process, and than the wait for connections. */
const limitMs = 60_000;

/** How the thread of the store fails, what the log says, and the options of Node. */
const ways = [
  ['throws', 'THROW', /the thread was made to fail/, ''],
  ['exits', 'EXIT', /The thread of the store ended with 7/, ''],
  ['runs out of memory', 'MEMORY', /memory limit/, '--max-old-space-size=80'],
] as const;

async function deployed(t: TestContext) {
  const dataDir = temporaryFolder(t);
  const { platform, token } = await issueInto(dataDir, 1);
  const file = (publicUrl: string, author: string): Promise<RestAnswer> => {
    return send(publicUrl, platform, {
      target: '/api/v1/filing',
      body: JSON.stringify({ ...artwork, author }),
    });
  };
  return { dataDir, token, file };
}

/** The numbers of the calls that succeeded while the thread failed. The others must have got UNAVAILABLE. */
async function answeredOf(calls: readonly Promise<RestAnswer>[]): Promise<string[]> {
  const settled = await Promise.allSettled(calls);
  const answers = settled.flatMap((call) => (call.status === 'fulfilled' ? [call.value] : []));
  const refused = answers.filter(({ status }) => status !== 200);
  for (const { json, text } of refused) assert.equal(json.code, 'UNAVAILABLE', text);
  return answers.filter(({ status }) => status === 200).map(({ json }) => json.filingNo);
}

for (const [what, way, why, options] of ways) {
  test(`a service whose store ${what} logs it and ends; the next one has all stored filings`, {
    timeout: 300_000,
    skip: executable && 'an executable cannot be made to load what makes the thread fail',
  }, async (t) => {
    const { dataDir, token, file } = await deployed(t);
    const env = { NODE_OPTIONS: `--import=${preloaded} ${options}`, FAILING_THREAD: way };
    const service = await serveWatched(t, { ARTSEAL_DATA_DIR: dataDir, ...env });
    const authors = Array.from({ length: filings }, (_, place) => `Author ${place}`);
    const answered = await Promise.all(authors.map((author) => file(service.publicUrl, author)));
    const numbers = answered.map(({ json }) => json.filingNo).sort();
    assert.equal(numbers.at(-1)?.slice(8), '000020');

    const last = ['Nobody', 'beside', 'beside'];
    // The thread may execute some of them before it ends.
    numbers.push(...(await answeredOf(last.map((author) => file(service.publicUrl, author)))).sort());
    assert.equal(await service.end(limitMs), failed, service.stderr());
    const lines = service.stderr().trimEnd().split('\n');
    assert.match(lines.at(-1) ?? '', /^artseal: the store is lost/);
    assert.match(lines.at(-1) ?? '', why);
    const fatal = lines
      .slice(0, -1)
      .map((line) => JSON.parse(line))
      .filter(({ level }) => level === 60);
    assert.equal(fatal.length, 1, service.stderr());
    assert.match(fatal[0].err.message, why);
    assert.doesNotMatch(service.stderr(), /connections that are still open are cut off/);

    const next = await serveWatched(t, { ARTSEAL_DATA_DIR: dataDir });
    const { json } = await typedCall(next.internalUrl, token, 'FilingService/ListFilings', { pageSize: 100 });
    const stored = json.filings.map(({ filingNo }: { filingNo: string }) => filingNo).sort();
    assert.deepEqual(stored.slice(0, numbers.length), numbers);
    assert.ok(stored.length <= filings + last.length, 'a call without a response may be stored, once');
    const nextNo = (await file(next.publicUrl, 'next')).json.filingNo;
    assert.equal(nextNo.slice(8), String(stored.length + 1).padStart(6, '0'));
    assert.equal(await next.stop(), 0, next.stderr());
  });
}
