import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { checkLog, readLog } from '../../simulation/evidence.ts';
import { type ServeProcess, serveCommand } from '../support/command.ts';
import { type Answered, postAll, prepare, readDatabase, storedFilings } from '../support/filing-load.ts';
import { type IssuedPlatform, issueInto } from '../support/issued.ts';
import { createRandom } from '../support/random.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

/** A kill and the start behind it take about a second: CI has a hundred of them. */
const kills = Number(process.env.ARTSEAL_TEST_KILLS ?? 6);

/** So many that no platform's share is beyond its burst of 200. */
const platforms = 8;

/** Answers until a kill, at most, and filings that are signed for each life: more than can be answered until then. */
const answersMax = 80;
const filingsOfLife = 300;

/** Files until so many are answered, and kills the service then, with dozens of calls under way. */
async function fileUntilKilled(
  service: ServeProcess,
  issued: readonly IssuedPlatform[],
  life: number,
  answers: number,
): Promise<Answered[]> {
  const answered: Answered[] = [];
  const waiting = prepare(issued, filingsOfLife, (life - 1) * filingsOfLife + 1);
  await postAll(
    service.publicUrl,
    waiting,
    (answer) => {
      answered.push(answer);
      if (answered.length === answers) service.child.kill('SIGKILL');
    },
    () => answered.length >= answers,
  );
  assert.equal(await service.stop('SIGKILL'), null);
  return answered;
}

/** What was answered is stored as answered, and what is stored is in the tree, which begins with those that were shown. */
function agree(dataDir: string, answered: readonly Answered[], shown: ReadonlyMap<number, string>): void {
  checkLog(readDatabase(dataDir, readLog), shown);
  const stored = new Map(storedFilings(dataDir).map((filing) => [filing.filingNo, filing]));
  for (const { filingNo, author, hash, timestamp } of answered) {
    assert.deepEqual(stored.get(filingNo), { filingNo, author, hash, timestamp });
  }
}

test(`log and records agree after each of ${kills} kills under load`, {
  timeout: 60_000 + kills * 20_000,
}, async (t: TestContext) => {
  const random = createRandom();
  t.diagnostic(`seed ${random.seed}`);
  const dataDir = temporaryFolder(t);
  const { platforms: issued } = await issueInto(dataDir, platforms);
  const shown = new Map<number, string>();
  const answered: Answered[] = [];
  for (let life = 1; life <= kills; life += 1) {
    const service = await serveCommand(t, { ARTSEAL_DATA_DIR: dataDir });
    agree(dataDir, answered, shown);
    answered.push(...(await fileUntilKilled(service, issued, life, 1 + random.below(answersMax))));
  }
  const service = await serveCommand(t, { ARTSEAL_DATA_DIR: dataDir });
  agree(dataDir, answered, shown);
  t.diagnostic(`${answered.length} filings were answered`);
  assert.equal(await service.stop('SIGTERM'), 0);
});
