import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { serveIssued } from '../support/issued.ts';
import { startService } from '../support/service.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { type BoundedResult, runShell } from '../support/watched-command.ts';

const artwork = {
  author: '齐白石 «Qi Baishi» 🎨',
  era: 'siècle XX',
  size: '68 × 136 cm',
  material: 'encre & couleur',
  condition: 'bon: 100 % "sain" \\ $HOME `id`',
  price: 128_000_000,
};

/** What an integrator writes who has the documentation, a shell, openssl and curl, and nothing else. */
const client = `
set -eu
sha256() { openssl dgst -sha256 -r "$1" | cut -d' ' -f1; }
hmac() { openssl dgst -sha256 -hmac "$API_SECRET" -r | cut -d' ' -f1; }

# request METHOD TARGET [BODY]: prints the answer, then its status on a line of its own.
request() {
  method=$1 target=$2
  printf '%s' "\${3-}" > "$WORK/body"
  timestamp=\${TIMESTAMP:-$(date +%s)}
  nonce=\${NONCE:-$(openssl rand -hex 16)}
  signature=$(printf '%s' "$method$target$(sha256 "$WORK/body")$timestamp$nonce" | hmac)
  set -- -sS -X "$method" -w '\\n%{http_code}\\n' "$BASE_URL$target" \\
    -H "X-Api-Key: $API_KEY" -H "X-Timestamp: $timestamp" -H "X-Nonce: $nonce" -H "X-Signature: $signature"
  if [ -s "$WORK/body" ]; then
    set -- "$@" -H 'Content-Type: application/json' --data-binary "@$WORK/body"
  else
    set -- "$@" -H 'Accept: application/json'
  fi
  curl "$@"
}
`;

const allCalls = `${client}
request POST /api/v1/filing "$FILING" > "$WORK/filing"
cat "$WORK/filing"
filing_no=$(sed -n 's/.*"filingNo":"\\([^"]*\\)".*/\\1/p' "$WORK/filing")
request GET "/api/v1/provenance/$filing_no"
request POST /api/v1/escrow \\
  '{"filingNo":"'"$filing_no"'","type":"GUARANTEE","amount":128000000,"buyerId":"买方-1","sellerId":"seller-1"}' \\
  > "$WORK/escrow"
cat "$WORK/escrow"
escrow_id=$(sed -n 's/.*"escrowId":"\\([^"]*\\)".*/\\1/p' "$WORK/escrow")
request POST "/api/v1/escrow/$escrow_id/release"
request GET "/api/v1/escrow?filingNo=$filing_no&state=RELEASED"
`;

const replay = `${client}
NONCE=$(openssl rand -hex 16) TIMESTAMP=$(date +%s)
request POST /api/v1/filing "$FILING"
request POST /api/v1/filing "$FILING"
`;

const tampered = `${client}
API_SECRET="$API_SECRET"x
request POST /api/v1/filing "$FILING"
`;

async function clientOf(t: TestContext) {
  const { publicUrl, platform } = await serveIssued(t);
  const env = {
    BASE_URL: publicUrl,
    API_KEY: platform.apiKey,
    API_SECRET: platform.apiSecret,
    FILING: JSON.stringify(artwork),
  };
  return (script: string) => runShell(t, script, { ...env, WORK: temporaryFolder(t) });
}

/** The answers that a script printed, each with its status. */
function answersOf({ code, stdout, stderr }: BoundedResult) {
  assert.equal(code, 0, stderr);
  const lines = stdout.trimEnd().split('\n');
  return Array.from({ length: lines.length / 2 }, (_, place) => {
    const [body = '', status] = lines.slice(2 * place);
    return { status: Number(status), json: JSON.parse(body) };
  });
}

/** The evidence hash, as anybody can compute it from request and answer. */
function evidenceHash(filingNo: string, timestamp: string): string {
  const { author, condition, era, material, price, size } = artwork;
  const canonical = JSON.stringify({ author, condition, era, filingNo, material, price, size, timestamp });
  return createHash('sha256').update(canonical).digest('hex');
}

test('a client made of sh, openssl and curl', { timeout: 300_000 }, async (t) => {
  const run = await clientOf(t);
  await t.test('files, reads provenance, sells and lists', async () => {
    const [filing, provenance, escrow, release, list] = answersOf(await run(allCalls));
    for (const answer of [filing, provenance, escrow, release, list]) assert.equal(answer?.status, 200);
    const { filingNo, timestamp, hash, status } = filing?.json ?? {};
    assert.match(filingNo, /^AS-\d{4}-000001$/);
    assert.equal(status, 'SUBMITTED');
    assert.equal(hash, evidenceHash(filingNo, timestamp));
    assert.deepEqual(provenance?.json, {
      filingNo,
      author: artwork.author,
      records: [{ event: 'SUBMITTED', at: timestamp.slice(0, 10) }],
      retentionYears: 5,
    });
    const { escrowId, ...terms } = escrow?.json ?? {};
    assert.match(escrowId, /^ES-\d{4}-[0-9A-Z]{4}$/);
    const clearing = 'LICENSED_PSP_NO_SECOND_CLEARING';
    assert.deepEqual(terms, { state: 'FROZEN', clearing, amount: 128_000_000 });
    assert.deepEqual([release?.json.escrowId, release?.json.state], [escrowId, 'RELEASED']);
    assert.deepEqual(list?.json, { escrows: [release?.json], nextPageToken: '' });
  });

  await t.test('is rejected when it sends a request twice', async () => {
    const [first, second] = answersOf(await run(replay));
    assert.equal(first?.status, 200);
    assert.deepEqual([second?.status, second?.json.code], [401, 'NONCE_REUSED']);
    assert.deepEqual(Object.keys(second?.json ?? {}), ['code', 'message', 'requestId']);
  });

  await t.test('is rejected when it signs with another secret', async () => {
    const [answer] = answersOf(await run(tampered));
    assert.deepEqual([answer?.status, answer?.json.code], [401, 'SIGNATURE_INVALID']);
  });
});

test('curl calls the internal API over a Unix socket', async (t) => {
  const path = join(temporaryFolder(t), 'internal.sock');
  const service = await startService(t, { env: { ARTSEAL_INTERNAL_ADDR: `unix:${path}` } });
  const token = await service.token();
  const { code, stdout, stderr } = await runShell(
    t,
    `curl -sS --unix-socket "$SOCKET" -H "Authorization: Bearer $TOKEN" --json '{}' \\
       http://localhost/artseal.v1.FilingService/ListFilings
     curl -sS --unix-socket "$SOCKET" --http2-prior-knowledge --json '{}' -o /dev/null -w '\\n%{http_code} %{http_version}\\n' \\
       http://localhost/artseal.v1.FilingService/ListFilings`,
    { SOCKET: path, TOKEN: token },
  );
  assert.equal(code, 0, stderr);
  assert.match(stdout, /^\{\}\n401 2\n$/);
});
