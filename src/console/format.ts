/** The word of an enum for a number; the number itself if this version does not know it. */
export function word(numbers: Readonly<Record<string, number>>, value: number | undefined): string {
  if (value === undefined || value === 0) return '';
  return Object.keys(numbers).find((name) => numbers[name] === value) ?? String(value);
}

/** An amount in minor units, with its currency: `€ 128,000.00`. */
export function money(minor: bigint, currency: string): string {
  try {
    const format = new Intl.NumberFormat('en', { style: 'currency', currency, currencyDisplay: 'code' });
    const digits = format.resolvedOptions().maximumFractionDigits ?? 2;
    const text = String(minor).padStart(digits + 1, '0');
    const whole = text.slice(0, text.length - digits);
    const exact = digits === 0 ? whole : `${whole}.${text.slice(-digits)}`;
    // As a string, it keeps amounts exact that a number cannot hold.
    return format.format(exact as `${number}`);
  } catch {
    return `${minor} minor units of ${currency}`;
  }
}

/** An RFC 3339 time, shorter: `2026-11-27 23:05:11 +08:00`. */
export const instant = (text: string): string =>
  text
    .replace('T', ' ')
    .replace(/(?=[+-]\d\d:\d\d$)/, ' ')
    .replace(/Z$/, ' UTC');

/** A whole number with thousands separators. */
export const count = (value: number | bigint): string => value.toLocaleString('en');

/** A size in bytes: `1.2 GB`. */
export function bytes(value: number): string {
  const units = ['B', 'kB', 'MB', 'GB', 'TB'];
  const power = value < 1_000 ? 0 : Math.min(units.length - 1, Math.floor(Math.log10(value) / 3));
  const scaled = value / 1_000 ** power;
  return `${scaled < 10 && power > 0 ? scaled.toFixed(1) : Math.round(scaled)} ${units[power]}`;
}

/** A duration in the largest unit that fits: `3 hours`. */
export function duration(seconds: number): string {
  const [size, unit] =
    (
      [
        [86_400, 'day'],
        [3_600, 'hour'],
        [60, 'minute'],
      ] as const
    ).find(([length]) => seconds >= length) ?? ([1, 'second'] as const);
  const whole = Math.floor(seconds / size);
  return `${whole} ${unit}${whole === 1 ? '' : 's'}`;
}

/** Random hex digits. Unlike `randomUUID`, browsers also have this over plain HTTP. */
export const randomKey = (): string =>
  Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join(
    '',
  );

/** The hash of a view of the console: `link('orders', id)` is `#/orders/ES-…`. */
export const link = (...parts: readonly string[]): string => `#/${parts.map(encodeURIComponent).join('/')}`;

/** The view that a query of the search box means, by the form of what was typed. */
export function viewOf(query: string): string {
  const text = query.trim();
  if (/^AS-\d{4}-\d{6}$/i.test(text)) return link('filings', text.toUpperCase());
  if (/^ES-\d{4}-[0-9A-Z]{4}$/i.test(text)) return link('orders', text.toUpperCase());
  if (/^wh_/.test(text)) return link('webhooks', text);
  if (/^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i.test(text))
    return link('requests', text.toLowerCase());
  return link('platforms', text);
}
