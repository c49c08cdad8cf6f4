import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { allSettings } from '../src/config/config.ts';
import { metrics } from '../src/telemetry/metrics/metrics.ts';

/**
 * Writes the tables of settings and of metrics, as the program declares them, into configure.md and monitor.md of
 * docs/operate, or of the folder that is given. A metric is a gauge, a counter if its name ends with `_total`, or marked as a
 * histogram.
 */

const [folder = join(import.meta.dirname, '..', 'docs', 'operate')] = process.argv.slice(2);

const code = (text: string) => `\`${text}\``;

writeTable('configure.md', 'settings', [
  'setting | meaning (default)\n--- | ---',
  ...allSettings.map(({ variable, fallback, meaning }) => {
    const byDefault = fallback === '' ? '' : ` (${code(fallback)})`;
    return `${code(variable)} | ${meaning.replaceAll('|', '\\|')}${byDefault}`;
  }),
]);
writeTable('monitor.md', 'metrics', [
  'metric | meaning\n--- | ---',
  ...metrics.map(({ name, type, labels = [], help }) => {
    const labelled = labels.length === 0 ? name : `${name}{${labels.join()}}`;
    return `${code(labelled)} | ${help}${type === 'histogram' ? ' (histogram)' : ''}`;
  }),
]);

/** Replaces what a page has between the two marks of a table. Fails if it has no such marks. */
function writeTable(page: string, name: string, rows: readonly string[]): void {
  const file = join(folder, page);
  const between = new RegExp(`(?<=<!-- ${name}: .* -->\n).*(?=<!-- ${name} end -->)`, 's');
  const text = readFileSync(file, 'utf8');
  if (!between.test(text)) throw new Error(`${file} has no place for the table of ${name}.`);
  writeFileSync(
    file,
    text.replace(between, () => `\n${rows.join('\n')}\n\n`),
  );
}
