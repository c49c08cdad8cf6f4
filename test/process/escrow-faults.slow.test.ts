import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { suite, type TestContext, test } from 'node:test';
import Sqlite from 'better-sqlite3';
import { projectFolder } from '../support/artseal-command.ts';
import { eventually } from '../support/eventually.ts';
import { anyAddresses } from '../support/free-address.ts';
import { type IssuedPlatform, issueInto } from '../support/issued.ts';
import { assertRejected } from '../support/rejected.ts';
import { artwork, escrowTerms } from '../support/samples.ts';
import { newNonce, type RestAnswer, send } from '../support/signed-request.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { commandEnvironment, serveWatched } from '../support/watched-command.ts';

/** The call of a client during which the service dies. */
type Asked = 'CREATE' | 'RELEASE' | 'REFUND';

/**
 * The points before and after each commit and each call to the provider, in their order. `status` is the stored status of the
 * instruction at that point, `isGiven` whether the provider has it. Once it is PREPARED, the service carries it out.
 */
const points = {
  'BEFORE PREPARED': { status: undefined, isGiven: false },
  'AFTER PREPARED': { status: 'PREPARED', isGiven: false },
  'BEFORE SENT': { status: 'PREPARED', isGiven: false },
  'AFTER SENT': { status: 'SENT', isGiven: false },
  'BEFORE CALL': { status: 'SENT', isGiven: false },
  'AFTER CALL': { status: 'SENT', isGiven: true },
  'BEFORE SETTLED': { status: 'SENT', isGiven: true },
  'AFTER SETTLED': { status: 'CONFIRMED', isGiven: true },
} as const;
type Point = keyof typeof points;

/** What each call leads to: the instruction, the states of the order, the status of the money. */
const outcomes = {
  CREATE: { kind: 'FREEZE', history: ['UNPAID', 'FROZEN'], payment: 'HELD' },
  RELEASE: { kind: 'RELEASE', history: ['UNPAID', 'FROZEN', 'RELEASED'], payment: 'PAID_OUT' },
  REFUND: { kind: 'REFUND', history: ['UNPAID', 'FROZEN', 'REFUNDED'], payment: 'RETURNED' },
} as const satisfies Record<Asked, { kind: string; history: readonly string[]; payment: string }>;

/** What is stored if the service dies before it stored anything of the call. */
const untouched = {
  CREATE: { history: undefined, payment: undefined },
  RELEASE: outcomes.CREATE,
  REFUND: outcomes.CREATE,
} as const;

const child = join(import.meta.dirname, 'children', 'serve-and-die.ts');
/** The longest wait for something that has to happen. */
const timeoutMs = 60_000;
/** An order that is due later than this is not looked up while a test runs. */
const quietMs = 900_000;

/** A service, which may kill itself. */
interface Mortal {
  readonly publicUrl: string;
  /** Resolves with its exit; undefined if it does not kill itself. */
  readonly died: Promise<unknown[]> | undefined;
}

/** Starts a service that kills itself at a point. */
async function serveAndDie(t: TestContext, dataDir: string, point: string): Promise<Mortal> {
  const env = {
    ARTSEAL_DATA_DIR: dataDir,
    ...anyAddresses,
    SERVE_AND_DIE: point,
  };
  const service = spawn(process.execPath, [child], { env: commandEnvironment(env), cwd: projectFolder });
  t.after(() => service.kill('SIGKILL'));
  service.stderr.pipe(process.stderr);
  const died = once(service, 'close');
  let output = '';
  service.stdout.setEncoding('utf8').on('data', (chunk) => {
    output += chunk;
  });
  const [, publicUrl = ''] = await eventually(`${point}: it is ready`, timeoutMs, () => {
    assert.deepEqual([service.exitCode, service.signalCode], [null, null], `it ended early: ${output}`);
    return /^artseal ready public=(\S+)/m.exec(output) ?? undefined;
  });
  return { publicUrl, died };
}

/** A request for an order, under an idempotency key. */
interface Sent {
  readonly filingNo: string;
  /** Undefined if the order does not exist yet. */
  readonly escrowId: string | undefined;
  readonly target: string;
  readonly body: string | undefined;
  readonly key: string;
  readonly nonce: string;
  readonly timestamp: string;
}

function post(
  publicUrl: string,
  platform: IssuedPlatform,
  sent: Sent,
  isRepeated = false,
): Promise<RestAnswer> {
  const { target, body, key, nonce, timestamp } = sent;
  return send(publicUrl, platform, {
    method: 'POST',
    target,
    headers: { 'Idempotency-Key': key },
    ...(body === undefined ? {} : { body }),
    ...(isRepeated ? {} : { nonce, timestamp }),
  });
}

/** Files an artwork, and opens an order for it if the call resolves one. */
async function prepare({ publicUrl }: Mortal, platform: IssuedPlatform, asked: Asked): Promise<Sent> {
  const filing = await send(publicUrl, platform, { target: '/api/v1/filing', body: JSON.stringify(artwork) });
  assert.equal(filing.status, 200, filing.text);
  const { filingNo } = filing.json;
  const nowS = Math.floor(Date.now() / 1000);
  const more = { filingNo, key: newNonce(), nonce: newNonce(), timestamp: String(nowS) };
  const opening = { target: '/api/v1/escrow', body: JSON.stringify(escrowTerms(filingNo)) };
  if (asked === 'CREATE') return { ...more, ...opening, escrowId: undefined };
  const { status, text, json } = await send(publicUrl, platform, opening);
  assert.equal(status, 200, text);
  const target = `/api/v1/escrow/${json.escrowId}/${asked.toLowerCase()}`;
  return { ...more, target, body: undefined, escrowId: json.escrowId };
}

function read<T>(dataDir: string, file: string, sql: string, ...values: string[]): T[] {
  const client = new Sqlite(join(dataDir, file), { readonly: true });
  try {
    return client.prepare<string[], T>(sql).all(...values);
  } finally {
    client.close();
  }
}

/** Waits until the service has nothing left to do for the order of a filing. */
async function becomesQuiet(dataDir: string, filingNo: string): Promise<void> {
  const sql = 'SELECT look_up_at_ms AS dueAtMs FROM escrow WHERE filing_no = ?';
  await eventually(`the order of ${filingNo} is quiet`, timeoutMs, () => {
    const [order] = read<{ dueAtMs: number }>(dataDir, 'artseal.db', sql, filingNo);
    return order !== undefined && order.dueAtMs > Date.now() + quietMs;
  });
}

/** Reads what the service and the provider stored of the one order of a filing. */
function onDisk(dataDir: string, filingNo: string) {
  const ours = <T>(sql: string) => read<T>(dataDir, 'artseal.db', sql, filingNo);
  const orders = ours<{ id: number; escrowId: string }>(
    'SELECT id, escrow_id AS escrowId FROM escrow WHERE filing_no = ?',
  );
  const ofOrder = 'FROM escrow JOIN $ ON order_id = escrow.id WHERE filing_no = ?';
  const history = ours<{ state: string }>(
    `SELECT c.state ${ofOrder.replace('$', 'escrow_change c')} ORDER BY position`,
  );
  const operations = ours<{ instructionId: string; kind: string; status: string }>(
    `SELECT o.instruction_id AS instructionId, kind, status
     ${ofOrder.replace('$', 'escrow_instruction o')} ORDER BY o.id`,
  );
  const transfers = ours(`SELECT 1 FROM provenance_record WHERE event = 'TRANSFER' AND filing_no = ?`);
  const theirs = <T>(sql: string) =>
    read<T>(dataDir, 'simulated-provider.db', sql, operations[0]?.instructionId ?? '');
  return {
    orders,
    operations,
    history: history.map(({ state }) => state),
    transfers: transfers.length,
    holds: theirs<{ payment: string }>(`SELECT state->>'status' AS payment FROM hold WHERE hold_id = ?`),
    given: theirs<{ instructionId: string; kind: string }>(
      `SELECT key AS instructionId, value->>'kind' AS kind
       FROM hold, json_each(state, '$.instructions') WHERE hold_id = ?`,
    ),
  };
}

/** Asserts that order, history, money and provenance agree, and that each instruction was sent under one id. */
function assertAgrees(dataDir: string, filingNo: string, history: readonly string[], payment: string): void {
  const { orders, ...found } = onDisk(dataDir, filingNo);
  const kinds = history.slice(1).map((state) => kindOf(state));
  assert.equal(orders.length, 1, 'one order');
  assert.deepEqual(found.history, history);
  assert.deepEqual(
    found.operations.map(({ kind, status }) => `${kind} ${status}`),
    kinds.map((kind) => `${kind} CONFIRMED`),
  );
  assert.deepEqual(found.holds, [{ payment }]);
  assert.deepEqual(
    found.given.map(({ instructionId, kind }) => `${kind} ${instructionId}`).sort(),
    found.operations.map(({ instructionId, kind }) => `${kind} ${instructionId}`).sort(),
  );
  assert.equal(found.transfers, history.at(-1) === 'RELEASED' ? 1 : 0, 'TRANSFER records');
}

/** Asserts that what is stored of the instruction is what a death at this point leaves. */
function assertLeft(dataDir: string, { filingNo }: Sent, asked: Asked, point: Point): void {
  const { operations, given } = onDisk(dataDir, filingNo);
  const { kind } = outcomes[asked];
  const { status, isGiven } = points[point];
  assert.deepEqual(
    operations.filter((operation) => operation.kind === kind).map((operation) => operation.status),
    status === undefined ? [] : [status],
    'what the service stored',
  );
  const carriedOut = given.filter((operation) => operation.kind === kind);
  assert.equal(carriedOut.length, isGiven ? 1 : 0, 'what the provider carried out');
  const ids = (file: string, query: string) => read<{ id: string }>(dataDir, file, query).map(({ id }) => id);
  const written = new Set(ids('artseal.db', 'SELECT instruction_id AS id FROM escrow_instruction'));
  const unwritten = ids(
    'simulated-provider.db',
    `SELECT key AS id FROM hold, json_each(state, '$.instructions')`,
  ).filter((id) => !written.has(id));
  assert.deepEqual(unwritten, [], 'what the provider carried out and the service did not store');
}

function kindOf(state: string): string {
  const outcome = Object.values(outcomes).find(({ history }) => history.at(-1) === state);
  return outcome?.kind ?? 'NONE';
}

/** Asserts that the service completes the order without a further call. */
async function assertRecovers(
  dataDir: string,
  { filingNo }: Sent,
  asked: Asked,
  isWritten: boolean,
): Promise<void> {
  const { history, payment } = isWritten ? outcomes[asked] : untouched[asked];
  if (history === undefined || payment === undefined) {
    assert.deepEqual(onDisk(dataDir, filingNo).orders, []);
    return;
  }
  await eventually(`the order of ${filingNo} is ${history.at(-1)}`, timeoutMs, () => {
    const { operations } = onDisk(dataDir, filingNo);
    return operations.every(({ status }) => status === 'CONFIRMED');
  });
  assertAgrees(dataDir, filingNo, history, payment);
}

/** Asserts that the repeated request has the result of the first, and that everything happened once. */
async function assertRepeatable(
  publicUrl: string,
  platform: IssuedPlatform,
  sent: Sent,
  asked: Asked,
  dataDir: string,
): Promise<void> {
  const { history, payment } = outcomes[asked];
  for (const _ of ['first', 'second']) {
    const answer = await post(publicUrl, platform, sent, true);
    assert.equal(answer.status, 200, answer.text);
    assert.equal(answer.json.state, history.at(-1));
    const [order] = onDisk(dataDir, sent.filingNo).orders;
    assert.equal(answer.json.escrowId, sent.escrowId ?? order?.escrowId);
    assertAgrees(dataDir, sent.filingNo, history, payment);
  }
}

const all = ['CREATE', 'RELEASE', 'REFUND'] as const satisfies readonly Asked[];

/** A call, and the point at which the service dies during it. */
interface Death {
  readonly asked: Asked;
  readonly point: Point;
}

/** All points, each with another call than the one before. */
function deathsOf(lane: number): Death[] {
  return (Object.keys(points) as Point[]).map((point, place) => {
    return { asked: all[(lane + place) % all.length] ?? 'CREATE', point };
  });
}

/** Starts the service that dies in this way, or one that does not. */
async function serveUntil(t: TestContext, dataDir: string, death: Death | undefined): Promise<Mortal> {
  if (death !== undefined) return serveAndDie(t, dataDir, `${death.point} ${outcomes[death.asked].kind}`);
  const { publicUrl } = await serveWatched(t, { ARTSEAL_DATA_DIR: dataDir });
  return { publicUrl, died: undefined };
}

// The service that recovers from a death is the one that dies next, during another kind of instruction. Each lane begins
// with another kind, so together they cover each point with each kind.
suite('kill -9 at each step of an instruction: order and money agree after a restart', {
  concurrency: true,
}, () => {
  for (const [lane, first] of all.entries()) {
    test(`beginning with ${first}`, { timeout: 600_000 }, async (t) => {
      const dataDir = temporaryFolder(t);
      const { platform } = await issueInto(dataDir, 1);
      const deaths = deathsOf(lane);
      let service = await serveUntil(t, dataDir, deaths[0]);
      for (const [place, { asked, point }] of deaths.entries()) {
        await t.test(`${asked}, killed ${point.replace(' ', ' it was ')}`, async () => {
          const sent = await prepare(service, platform, asked);
          if (asked !== 'CREATE') await becomesQuiet(dataDir, sent.filingNo);
          await assert.rejects(
            post(service.publicUrl, platform, sent),
            'there was a response before the end',
          );
          assert.deepEqual(await service.died, [null, 'SIGKILL']);
          assertLeft(dataDir, sent, asked, point);
          service = await serveUntil(t, dataDir, deaths[place + 1]);
          const isWritten = points[point].status !== undefined;
          await assertRecovers(dataDir, sent, asked, isWritten);
          if (isWritten) assertRejected(await post(service.publicUrl, platform, sent), 401, 'NONCE_REUSED');
          await assertRepeatable(service.publicUrl, platform, sent, asked, dataDir);
        });
      }
    });
  }
});
