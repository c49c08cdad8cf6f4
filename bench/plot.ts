/** The values of an axis, which begins at 0 if it is not logarithmic. */
interface Axis {
  readonly isLog: boolean;
}

/** A line. */
export interface Series {
  readonly name: string;
  readonly points: readonly (readonly [x: number, y: number])[];
}

/** A diagram with a line for each server. */
export interface Panel {
  readonly title: string;
  readonly x: Axis & { readonly title: string };
  readonly y: Axis;
  readonly series: readonly Series[];
}

/** What a server's line looks like. The colours differ for people who see few of them, and so do the marks. */
const styles: Readonly<Record<string, { readonly color: string; readonly mark: string }>> = {
  service: { color: '#0072b2', mark: 'M-4-4h8v8h-8z' },
  floor: { color: '#4d4d4d', mark: 'M0-5L5 4H-5z' },
  fastify: { color: '#d55e00', mark: 'M0-5.5L5.5 0L0 5.5L-5.5 0z' },
  go: { color: '#009e73', mark: 'M-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0' },
};

const columns = 2;
const [panelWidth, panelHeight] = [440, 290];
/** Around the area of a panel's lines. */
const margin = { left: 62, right: 18, top: 34, bottom: 48 };
const head = 62;

/** An SVG file with panels, two in a row, on a white background: readers may have dark pages. */
export function svgOf(title: string, panels: readonly Panel[]): string {
  const names = [...new Set(panels.flatMap(({ series }) => series.map(({ name }) => name)))];
  const width = columns * panelWidth;
  const height = head + Math.ceil(panels.length / columns) * panelHeight;
  const placed = panels.map((panel, place) => {
    const [left, top] = [(place % columns) * panelWidth, head + Math.floor(place / columns) * panelHeight];
    return `<g transform="translate(${left} ${top})">\n${panelOf(panel)}\n</g>`;
  });
  return `${[
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" role="img" aria-label="${title}"`,
    '  font-family="system-ui, sans-serif" font-size="12" fill="#222">',
    `<rect width="${width}" height="${height}" fill="#fff"/>`,
    `<text x="16" y="24" font-size="16" font-weight="600">${title}</text>`,
    ...names.map(
      (name, place) =>
        `<g transform="translate(${30 + place * 110} 44)">${markOf(name)}<text x="12" y="4">${name}</text></g>`,
    ),
    ...placed,
    '</svg>',
  ].join('\n')}\n`;
}

const styleOf = (name: string) => styles[name] ?? { color: '#999', mark: 'M-3-3h6v6h-6z' };

function markOf(name: string): string {
  const { color, mark } = styleOf(name);
  return `<path d="${mark}" fill="${color}"/>`;
}

function panelOf({ title, x, y, series }: Panel): string {
  const points = series.flatMap(({ points }) => points);
  const [left, right] = [margin.left, panelWidth - margin.right];
  const [top, bottom] = [margin.top, panelHeight - margin.bottom];
  const xs = scaleOf(
    x,
    points.map(([value]) => value),
    left,
    right,
  );
  const ys = scaleOf(
    y,
    points.map(([, value]) => value),
    bottom,
    top,
  );
  const lines = series.map(({ name, points }) => {
    const at = points.map(([px, py]) => `${xs.place(px)},${ys.place(py)}`);
    const marks = at.map((place) => `<g transform="translate(${place})">${markOf(name)}</g>`);
    const line = `<polyline points="${at.join(' ')}" fill="none" stroke="${styleOf(name).color}" stroke-width="2"/>`;
    return [line, ...marks].join('');
  });
  const grid = (from: string, to: string) => `<path d="M${from}L${to}" stroke="#ddd"/>`;
  return [
    `<text x="${left}" y="20" font-weight="600">${title}</text>`,
    ...ys.ticks.map((tick) => {
      const at = ys.place(tick);
      return `${grid(`${left} ${at}`, `${right} ${at}`)}<text x="${left - 8}" y="${at + 4}" text-anchor="end">${label(tick)}</text>`;
    }),
    ...xs.ticks.map((tick) => {
      const at = xs.place(tick);
      return `${grid(`${at} ${top}`, `${at} ${bottom}`)}<text x="${at}" y="${bottom + 18}" text-anchor="middle">${label(tick)}</text>`;
    }),
    `<path d="M${left} ${top}V${bottom}H${right}" fill="none" stroke="#222"/>`,
    `<text x="${(left + right) / 2}" y="${bottom + 38}" text-anchor="middle">${x.title}</text>`,
    ...lines,
  ].join('\n');
}

interface Scale {
  readonly ticks: readonly number[];
  /** Where a value is, in pixels. */
  place(value: number): number;
}

function scaleOf({ isLog }: Axis, values: readonly number[], from: number, to: number): Scale {
  const ticks = isLog ? logTicks(Math.min(...values), Math.max(...values)) : linearTicks(Math.max(...values));
  const [low = 0, high = 1] = [ticks[0], ticks.at(-1)];
  const share = (value: number) =>
    isLog ? Math.log(value / low) / Math.log(high / low) : (value - low) / (high - low);
  return { ticks, place: (value) => Math.round((from + share(value) * (to - from)) * 10) / 10 };
}

/** 1, 2 and 5 times the powers of ten, or the powers alone if these are many: from the last one below to the first one above. */
function logTicks(min: number, max: number): number[] {
  const steps = max / min > 1_000 ? [1] : [1, 2, 5];
  const exponents = Array.from({ length: 20 }, (_, nth) => nth - 8);
  const all = exponents.flatMap((exponent) => steps.map((step) => step * 10 ** exponent));
  const first = all.findLastIndex((tick) => tick <= min);
  const last = all.findIndex((tick) => tick >= max);
  return all.slice(first, Math.max(last, first + 1) + 1);
}

/** From 0 to the first one above, in steps of 1, 2 or 5 times a power of ten. */
function linearTicks(max: number): number[] {
  const power = 10 ** Math.floor(Math.log10(max / 4));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size * 5 >= max) ?? 10 * power;
  return Array.from({ length: Math.ceil(max / step) + 1 }, (_, nth) => nth * step);
}

/** A value with k for thousands and M for millions, and no more digits than it needs. */
function label(value: number): string {
  if (value >= 1_000_000) return `${Number((value / 1_000_000).toPrecision(3))}M`;
  if (value >= 10_000) return `${Number((value / 1_000).toPrecision(3))}k`;
  return value.toLocaleString('en', { maximumFractionDigits: 3 });
}
