/** A line of a chart: its name, and a value for each time. */
interface Series {
  readonly name: string;
  readonly values: readonly number[];
}

const width = 480;
const height = 150;
const margin = { left: 44, bottom: 20, top: 8 } as const;

const hourOf = (atS: number): string =>
  new Date(atS * 1_000).toLocaleTimeString('en-GB', { hour: '2-digit', minute: '2-digit' });

/** The next value of 2, 4, 10, 20, 40, … that is not below a value: its half is whole, too. */
function roundUp(value: number): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(1, value)));
  return ([2, 4, 10].find((step) => step * power >= value) ?? 20) * power;
}

/** Lines over time. `times` are Unix seconds. */
export function Chart({
  title,
  times,
  series,
}: {
  title: string;
  times: readonly number[];
  series: readonly Series[];
}) {
  const [from = 0, to = 1] = [times[0], times.at(-1)];
  const max = roundUp(Math.max(1, ...series.flatMap(({ values }) => values)));
  const x = (atS: number) =>
    margin.left + ((atS - from) / Math.max(1, to - from)) * (width - margin.left - 8);
  const y = (value: number) => height - margin.bottom - (value / max) * (height - margin.bottom - margin.top);
  const totals = series.map(({ name, values }) => `${name}: ${values.reduce((sum, each) => sum + each, 0)}`);
  return (
    <figure>
      <figcaption>
        <strong>{title}</strong>
        <span class="legend">
          {totals.map((total, place) => (
            <span key={total} class={`line-${place}`}>
              {total}
            </span>
          ))}
        </span>
      </figcaption>
      {times.length < 2 ? (
        <p class="quiet">The plot begins when the server has run for two minutes.</p>
      ) : (
        <svg viewBox={`0 0 ${width} ${height}`} role="img" aria-label={`${title}. ${totals.join(', ')}.`}>
          {[0, max / 2, max].map((value) => (
            <g key={value} class="grid">
              <line x1={margin.left} x2={width - 8} y1={y(value)} y2={y(value)} />
              <text x={margin.left - 6} y={y(value) + 4} text-anchor="end">
                {value}
              </text>
            </g>
          ))}
          {[from, (from + to) / 2, to].map((atS, place) => (
            <text key={atS} x={x(atS)} y={height - 4} text-anchor={['start', 'middle', 'end'][place]}>
              {hourOf(atS)}
            </text>
          ))}
          {series.map(({ name, values }, place) => (
            <polyline
              key={name}
              class={`line-${place}`}
              points={values
                .map((value, at) => `${x(times[at] ?? 0).toFixed(1)},${y(value).toFixed(1)}`)
                .join(' ')}
            />
          ))}
        </svg>
      )}
    </figure>
  );
}

/** Bars with their values, as a table. */
export function Bars({
  title,
  unit,
  rows,
  empty,
}: {
  title: string;
  unit: string;
  rows: readonly (readonly [name: string, value: number, href?: string])[];
  empty: string;
}) {
  const max = Math.max(1, ...rows.map(([, value]) => value));
  return (
    <div class="bars">
      <h2>{title}</h2>
      {rows.length === 0 ? (
        <p class="quiet">{empty}</p>
      ) : (
        <ul>
          {rows.map(([name, value, href]) => (
            <li key={name}>
              <span>{href === undefined ? name : <a href={href}>{name}</a>}</span>
              <span>
                {value.toLocaleString('en')} <span class="hidden">{unit}</span>
              </span>
              <span class="bar" style={{ width: `${(100 * value) / max}%` }} />
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}
