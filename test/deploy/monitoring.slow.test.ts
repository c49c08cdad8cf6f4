import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { parse } from 'yaml';
import { projectFolder } from '../support/artseal-command.ts';
import { fileArtwork, openEscrow } from '../support/calls.ts';
import { makeSelfSigned } from '../support/certificates.ts';
import { eventually } from '../support/eventually.ts';
import { fileScope } from '../support/file-scope.ts';
import { installed, skipUnlessInstalled } from '../support/installed.ts';
import { scrape } from '../support/metrics.ts';
import { createDatabase, skipUnlessPostgres } from '../support/postgres.ts';
import { startService } from '../support/service.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

/** A rule of deploy/prometheus-rules.yaml. */
interface Rule {
  readonly alert: string;
  readonly expr: string;
  readonly labels: { readonly severity: string };
  readonly annotations: { readonly summary: string; readonly runbook: string };
}

/** The part of deploy/grafana-dashboard.json that these tests read. */
interface Dashboard {
  readonly templating: { readonly list: readonly { readonly query: string | { readonly query: string } }[] };
  readonly panels: readonly {
    readonly id: number;
    readonly targets?: readonly { readonly expr: string }[];
  }[];
}

const text = (path: string) => readFileSync(join(projectFolder, path), 'utf8');
const rulesFile = join(projectFolder, 'deploy', 'prometheus-rules.yaml');
const rules: readonly Rule[] = parse(text('deploy/prometheus-rules.yaml')).groups.flatMap(
  ({ rules }: { rules: readonly Rule[] }) => rules,
);
const dashboard = JSON.parse(text('deploy/grafana-dashboard.json')) as Dashboard;
const queries = dashboard.panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr));

const skip = skipUnlessInstalled('promtool');

/** Runs promtool. Returns its output if it found a fault. */
function promtool(...words: readonly string[]): string {
  const { status, stdout, stderr } = spawnSync(installed('promtool') ?? '', words, { encoding: 'utf8' });
  return status === 0 ? '' : stdout + stderr;
}

test('Prometheus reads the alert rules, and they fire in their cases', { skip }, () => {
  assert.equal(promtool('check', 'rules', rulesFile), '');
  assert.equal(promtool('test', 'rules', join(import.meta.dirname, 'prometheus-rules.test.yaml')), '');
});

test('each alert has a case in which it fires and one in which it does not', () => {
  const { tests } = parse(text('test/deploy/prometheus-rules.test.yaml'));
  const [usual, , loud] = tests;
  const names = rules.map(({ alert }) => alert);
  assert.deepEqual(
    usual.alert_rule_test.map(({ alertname }: { alertname: string }) => alertname),
    names,
  );
  assert.deepEqual(
    loud.promql_expr_test[0].exp_samples.map(({ labels }: { labels: string }) => labels),
    names.map((name) => `{alertname="${name}"}`),
  );
});

test('each alert has a severity and a page that names the alert', () => {
  for (const { alert, labels, annotations } of rules) {
    assert.ok(['page', 'ticket'].includes(labels.severity), alert);
    assert.match(text(annotations.runbook), new RegExp(`\\b${alert}\\b`), annotations.runbook);
  }
});

test('Prometheus reads the queries of the dashboard', { skip }, (t) => {
  const file = join(temporaryFolder(t), 'queries.yaml');
  const recorded = queries.map((expr, place) => ({
    record: `query:${place}`,
    expr: expr.replaceAll('$__rate_interval', '5m').replaceAll('$instance', '.*'),
  }));
  writeFileSync(file, JSON.stringify({ groups: [{ name: 'queries', rules: recorded }] }));
  assert.equal(promtool('check', 'rules', '--lint=none', file), '');
});

test('each panel of the dashboard has its own id', () => {
  assert.equal(new Set(dashboard.panels.map(({ id }) => id)).size, dashboard.panels.length);
});

/** Scrapes a service on PostgreSQL once it knows the state of its database. */
async function scrapeOnPostgres(): Promise<string> {
  const ARTSEAL_DATABASE_URL = await createDatabase(fileScope);
  const { metricsAddress } = await startService(fileScope, {
    env: { ARTSEAL_METRICS_ADDR: '127.0.0.1:0', ARTSEAL_DATABASE_URL },
  });
  return eventually('the state of the database', 60_000, async () => {
    const { text: scraped } = await scrape(`http://${metricsAddress}/metrics`);
    return scraped.includes('artseal_postgres_oldest_snapshot_seconds') && scraped;
  });
}

test('rules and dashboard use existing metrics, and the dashboard shows every metric', {
  skip: skipUnlessPostgres(),
}, async () => {
  const { certificateFile, keyFile } = makeSelfSigned(temporaryFolder(fileScope));
  const service = await startService(fileScope, {
    env: {
      ARTSEAL_METRICS_ADDR: '127.0.0.1:0',
      ARTSEAL_BACKUP_DIR: temporaryFolder(fileScope),
      ARTSEAL_INTERNAL_TLS_CERT: certificateFile,
      ARTSEAL_INTERNAL_TLS_KEY: keyFile,
    },
  });
  const platform = await service.platform();
  const { filingNo } = (await fileArtwork(service, platform)).json;
  // So that an instruction is open.
  const opening = openEscrow(service, platform, filingNo, { buyerId: 'sim-lost-request' });
  assert.equal((await opening).json.code, 'PAYMENT_PENDING');
  const onSqlite = await scrape(`http://${service.metricsAddress}/metrics`);
  const scraped = `${onSqlite.text}${await scrapeOnPostgres()}`;
  const samples = new Set(scraped.match(/^[a-z][a-z0-9_]*/gm));
  const variables = dashboard.templating.list.map(({ query }) => JSON.stringify(query));
  const asked = (expressions: readonly string[]) =>
    new Set(expressions.flatMap((expr) => expr.match(/\b(artseal|process)_[a-z0-9_]+/g) ?? []));
  const known = [...asked([...rules.map(({ expr }) => expr), ...queries, ...variables])];
  assert.deepEqual(
    known.filter((name) => !samples.has(name)),
    [],
  );
  const families = [...new Set([...scraped.matchAll(/^# TYPE (\S+)/gm)].map(([, name = '']) => name))];
  const shown = [...asked(queries)].map((name) => name.replace(/_(bucket|sum|count)$/, ''));
  assert.deepEqual(
    families.filter((name) => !shown.includes(name)),
    ['process_start_time_seconds'],
  );
});

test('promtool finds no fault in the metrics of a server', { skip }, async () => {
  const { metricsAddress } = await startService(fileScope, { env: { ARTSEAL_METRICS_ADDR: '127.0.0.1:0' } });
  const { text: input } = await scrape(`http://${metricsAddress}/metrics`);
  const { status, stdout, stderr } = spawnSync(installed('promtool') ?? '', ['check', 'metrics'], {
    input,
    encoding: 'utf8',
  });
  assert.deepEqual({ status, output: stdout + stderr }, { status: 0, output: '' });
});
