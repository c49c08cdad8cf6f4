import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { transports } from '../http/connect/transports.ts';
import { issueInto } from '../support/issued.ts';
import { artwork } from '../support/samples.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { typedClients } from '../support/typed-clients.ts';
import { serveWatched } from '../support/watched-command.ts';

const painting = { ...artwork, price: BigInt(artwork.price) };

test('a CreateFiling under a key files once over every protocol, also with kill -9 before it is repeated', async (t) => {
  const dataDir = join(temporaryFolder(t), 'data');
  const { token } = await issueInto(dataDir, 0);
  const serve = async () => {
    const service = await serveWatched(t, { ARTSEAL_DATA_DIR: dataDir });
    const entries = Object.entries(transports).map(([name, transport]) => {
      const { filings } = typedClients(transport(service.internalUrl, token));
      const file = async (word: string) => {
        const headers = { 'Idempotency-Key': `${word}-${name.replaceAll(' ', '-')}` };
        return (await filings.createFiling(painting, { headers })).filingNo;
      };
      return [name, file] as const;
    });
    return { service, protocols: entries };
  };

  const first = await serve();
  const answered = new Map<string, string>();
  for (const [name, file] of first.protocols) answered.set(name, await file('answered'));
  // Of these nobody knows which were stored: the process is killed when the first of them is answered.
  const begun = first.protocols.map(([, file]) => file('begun'));
  const settled = Promise.allSettled(begun);
  const oneAnswered = await Promise.race(begun);
  await first.service.stop('SIGKILL');
  await settled;

  const second = await serve();
  const numbers = new Set<string>();
  for (const [name, file] of second.protocols) {
    assert.equal(await file('answered'), answered.get(name), name);
    numbers.add(await file('answered'));
    const number = await file('begun');
    numbers.add(number);
    assert.equal(await file('begun'), number, name);
  }
  assert.ok(numbers.has(oneAnswered));
  assert.equal(numbers.size, 2 * second.protocols.length);
  const [, fileOnce] = second.protocols[0] ?? assert.fail();
  const next = await fileOnce('next');
  assert.equal(Number(next.slice(-6)), numbers.size + 1, 'nothing else was filed');
  assert.equal(await second.service.stop('SIGTERM'), 0);
});
