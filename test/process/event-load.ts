import assert from 'node:assert/strict';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { readDatabase } from '../support/engine.ts';
import type { IssuedPlatform } from '../support/issued.ts';
import type { Random } from '../support/random.ts';
import { artwork, escrowTerms } from '../support/samples.ts';
import { newNonce, type RestAnswer, send } from '../support/signed-request.ts';
import { pauseMs, type Reborn } from './event-consumers.ts';

/** Concurrent calls of a platform. */
const sellersPerPlatform = 6;

/** The pause before a seller repeats a call for an unsettled order, in milliseconds. */
const unsettledMs = 200;

/** The buyer: mostly an ordinary one, sometimes one whose payment fails. */
const buyers = [
  ...Array.from({ length: 7 }, () => 'buyer-1'),
  ...['sim-lost-answer', 'sim-lost-request', 'sim-decline'],
];

/** The end of a FROZEN order: two of three are released, some of the others refunded. */
const ends = ['release', 'release', 'release', 'release', 'refund', undefined];

/** An event in one line: its type, its resource and the resulting state. */
export const lineOf = ({
  type,
  filingNo,
  escrowId,
  state,
}: {
  readonly type: string;
  readonly filingNo?: string;
  readonly escrowId?: string;
  readonly state?: string;
}): string => [type, escrowId ?? filingNo, state].join(' ').trim();

/**
 * Platforms file and sell until the signal, and end what they began. A call without a response is repeated with the service that
 * runs then. `answers` are all responses, `answered` the successful ones by platform, each as a `lineOf`.
 */
export function sell(
  service: Reborn,
  platforms: readonly IssuedPlatform[],
  random: Random,
  signal: AbortSignal,
) {
  let answers = 0;
  const answered = new Map(platforms.map(({ caller }) => [caller, new Set<string>()]));

  async function ask(platform: IssuedPlatform, target: string, body?: object): Promise<RestAnswer> {
    const headers = { 'Idempotency-Key': newNonce() };
    const sent = { method: 'POST', target, headers, ...(body && { body: JSON.stringify(body) }) };
    for (;;) {
      const { publicUrl } = await service.running();
      const answer = await send(publicUrl, platform, sent).catch(() => undefined);
      if (answer === undefined) await delay(pauseMs);
      else if (isUnsettled(answer)) await delay(unsettledMs);
      else {
        answers += 1;
        return answer;
      }
    }
  }

  async function sellOne(platform: IssuedPlatform): Promise<void> {
    const own = answered.get(platform.caller);
    const filed = await ask(platform, '/api/v1/filing', artwork);
    assert.equal(filed.status, 200, filed.text);
    const { filingNo } = filed.json;
    own?.add(lineOf({ type: 'filing.created', filingNo }));
    if (random.below(3) === 0) return;
    const terms = { ...escrowTerms(filingNo), buyerId: random.pick(buyers) };
    const opened = await ask(platform, '/api/v1/escrow', terms);
    if (opened.status === 402) return;
    assert.equal(opened.status, 200, opened.text);
    const { escrowId } = opened.json;
    own?.add(lineOf({ type: 'escrow.frozen', escrowId, state: 'FROZEN' }));
    const end = random.pick(ends);
    if (end === undefined) return;
    const resolved = await ask(platform, `/api/v1/escrow/${escrowId}/${end}`);
    assert.equal(resolved.status, 200, resolved.text);
    const { state } = resolved.json;
    own?.add(lineOf({ type: `escrow.${state.toLowerCase()}`, escrowId, state }));
  }

  const sellOn = async (platform: IssuedPlatform) => {
    while (!signal.aborted) await sellOne(platform);
  };
  const sellers = platforms.flatMap((platform) =>
    Array.from({ length: sellersPerPlatform }, () => sellOn(platform)),
  );
  return { answers: () => answers, answered, ended: Promise.all(sellers) };
}

/** Whether the same call may later get another response: its order waits for the provider or for another call. */
function isUnsettled({ status, json }: RestAnswer): boolean {
  return status === 503 || json.code === 'IDEMPOTENCY_IN_PROGRESS';
}

/** The events in a data folder by platform; undefined while an order is pending. */
export function happenedTo(dataDir: string): Promise<ReadonlyMap<string, string[]> | undefined> {
  const sql = `
    SELECT caller.name AS platform, 'filing.created' AS type, filing_no AS filingNo, NULL AS escrowId, NULL AS state
      FROM filing JOIN caller ON caller.id = caller_id
    UNION ALL
    SELECT caller.name, 'provenance.transferred', filing_no, NULL, NULL
      FROM provenance_record JOIN filing USING (filing_no) JOIN caller ON caller.id = caller_id WHERE event = 'TRANSFER'
    UNION ALL
    SELECT caller.name, 'escrow.' || lower(change.state), filing_no, escrow_id, change.state
      FROM escrow_change AS change JOIN escrow ON escrow.id = order_id JOIN caller ON caller.id = caller_id
      WHERE change.state <> 'UNPAID'`;
  const open = `SELECT 1 FROM escrow_instruction WHERE status IN ('PREPARED', 'SENT', 'UNKNOWN')`;
  return readDatabase(dataDir, (client) => {
    if (client.prepare(open).get() !== undefined) return undefined;
    const rows = client.prepare(sql).all() as (Parameters<typeof lineOf>[0] & { platform: string })[];
    const byPlatform = Map.groupBy(rows, ({ platform }) => platform);
    return new Map(byPlatform.entries().map(([platform, own]) => [platform, own.map(lineOf)]));
  });
}

/** The state of each order with where its money is by the books of the simulated provider, each pair once. */
export function statesAndMoney(dataDir: string): Promise<string[]> {
  const sql = `
    SELECT DISTINCT
      (SELECT state FROM escrow_change WHERE order_id = escrow.id ORDER BY position DESC LIMIT 1) AS state,
      (SELECT hold.state->>'status' FROM bank.hold WHERE hold_id =
        (SELECT instruction_id FROM escrow_instruction WHERE order_id = escrow.id ORDER BY id LIMIT 1)) AS money
    FROM escrow`;
  return readDatabase(dataDir, (client) => {
    client.prepare('ATTACH ? AS bank').run(join(dataDir, 'simulated-provider.db'));
    return client
      .prepare<[], { state: string; money: string | null }>(sql)
      .all()
      .map(({ state, money }) => `${state} ${money}`);
  });
}
