import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { metrics } from '../src/telemetry/metrics/metrics.ts';

/** Writes the table of metrics, as src/telemetry/metrics/metrics.ts declares them, between its two marks of a document. */

const [file = join(import.meta.dirname, '..', 'docs', 'operations.md')] = process.argv.slice(2);
const table = /(?<=<!-- metrics: .* -->\n).*(?=<!-- metrics end -->)/s;

const rows = metrics.map(
  ({ name, type, labels = [], help }) =>
    `| \`${name}\` | ${type} | ${labels.map((label) => `\`${label}\``).join(', ')} | ${help} |\n`,
);
const text = readFileSync(file, 'utf8');
if (!table.test(text)) throw new Error(`${file} has no place for the table of metrics.`);
writeFileSync(
  file,
  text.replace(
    table,
    () => `\n| metric | type | labels | what it is |\n|---|---|---|---|\n${rows.join('')}\n`,
  ),
);
