import { useEffect } from 'preact/hooks';
import { AdminService, type GetOverviewResponse } from '../../gen/artseal/v1/admin_pb.ts';
import { Bars, Chart } from './chart.tsx';
import { bytes, count, duration, link } from './format.ts';
import { growth, metricValue, shownMetrics } from './overview-data.ts';
import { useSession } from './session.ts';
import { Facts, Shown, Title, useLoad } from './ui.tsx';

/** How often the overview is read again, in milliseconds. */
const refreshMs = 30_000;
/** Points of a plot, at most. */
const pointsMax = 96;

/** The state of the server. */
export function OverviewView() {
  const admin = useSession().client(AdminService);
  const loaded = useLoad(async () => {
    const [overview, { month, usages }] = await Promise.all([
      admin.getOverview({}),
      admin.listUsage({ pageSize: 100 }),
    ]);
    return { overview, month, usages };
  }, '');
  useEffect(() => {
    const timer = setInterval(loaded.reload, refreshMs);
    return () => clearInterval(timer);
  }, [loaded.reload]);
  return (
    <>
      <Title>Overview</Title>
      <Shown of={loaded}>
        {({ overview, month, usages }) => (
          <>
            <Readiness of={overview} />
            <State of={overview} />
            <Plots of={overview} />
            <div class="columns">
              <Bars
                title={`Calls by platform in ${month}`}
                unit="calls"
                empty="No platform is registered yet."
                rows={usages
                  .map(({ platform, calls }) => [platform?.caller ?? '', Number(calls)] as const)
                  .toSorted(([, one], [, other]) => other - one)
                  .slice(0, 10)
                  .map(([name, calls]) => [name, calls, link('platforms', name)] as const)}
              />
              <Bars
                title="Open orders by state and age"
                unit="orders"
                empty="No order is open."
                rows={overview.metrics
                  .filter(({ name, value }) => name === shownMetrics.openOrders && value > 0)
                  .map(({ labels: { state = '', age = '' }, value }) => [
                    `${state}, ${age.replace('_', ' ')}`,
                    value,
                    link('orders', state.toLowerCase()),
                  ])}
              />
            </div>
          </>
        )}
      </Shown>
    </>
  );
}

function Readiness({ of: { faults } }: { of: GetOverviewResponse }) {
  if (faults.length === 0) return null;
  return (
    <div class="problem">
      <p>
        <strong>The server is not ready.</strong>
      </p>
      <ul>
        {faults.map(({ part, text }) => (
          <li key={part}>
            {part}: {text}
          </li>
        ))}
      </ul>
    </div>
  );
}

function State({ of: overview }: { of: GetOverviewResponse }) {
  const value = (...[metric, labels]: [keyof typeof shownMetrics, Record<string, string>?]) =>
    metricValue(overview, metric, labels);
  const number = (found: number | undefined) => (found === undefined ? 'unknown' : count(found));
  const version = overview.metrics.find(({ name }) => name === shownMetrics.build)?.labels.version;
  const [review, failing, disabled] = [
    value('inReview'),
    value('endpoints', { state: 'failing' }),
    value('endpoints', { state: 'disabled' }),
  ];
  const free = value('diskFree');
  return (
    <Facts
      of={[
        ['Readiness', overview.faults.length === 0 ? 'ready' : 'not ready'],
        ['Orders in review', <a href={link('orders', 'review')}>{number(review)}</a>],
        ['FROZEN orders', number(value('orders', { state: 'FROZEN' }))],
        ['Failing webhooks', <a href={link('webhooks', 'failing')}>{number(failing)}</a>],
        ['Disabled webhooks', <a href={link('webhooks', 'disabled')}>{number(disabled)}</a>],
        ['Deliveries to retry', number(value('deliveries', { status: 'pending' }))],
        ['Filing numbers left this year', number(value('numbersLeft', { kind: 'filing' }))],
        ['Order numbers left this year', number(value('numbersLeft', { kind: 'escrow' }))],
        ['Free on the disk', free === undefined ? undefined : bytes(free)],
        ['Last verified backup', backupText(value('backupTaken'), value('backupFailing'))],
        ['Version', version],
        ['Environment', overview.environment],
      ]}
    />
  );
}

/** How old the last backup is; undefined if none is required. */
function backupText(takenS: number | undefined, failing: number | undefined): string | undefined {
  if (takenS === undefined) return undefined;
  const age = takenS === 0 ? 'none' : `${duration(Math.max(0, Date.now() / 1_000 - takenS))} ago`;
  return failing ? `${age}; the last attempt failed` : age;
}

function Plots({ of: { samples } }: { of: GetOverviewResponse }) {
  const { times, grown } = growth(samples, pointsMax);
  const [first, last] = [Number(samples[0]?.at ?? 0), Number(samples.at(-1)?.at ?? 0)];
  const since =
    samples.length > 1_440 ? '' : ` Since the start of the server, ${duration(last - first)} ago.`;
  return (
    <section>
      <p class="quiet">Last 24 hours, in your time zone.{since}</p>
      <div class="columns">
        <Chart title="Filings" times={times} series={[{ name: 'Filings', values: grown('filings') }]} />
        <Chart
          title="Calls of the public API"
          times={times}
          series={[
            { name: 'Calls', values: grown('calls') },
            { name: 'Rejected (4xx)', values: grown('rejected') },
            { name: 'Failed (5xx)', values: grown('failed') },
          ]}
        />
      </div>
    </section>
  );
}
