import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { allSettings } from '../src/config/config.ts';

/** Writes the table of settings, as src/config/config.ts and the providers declare them, between its two marks of a document. */

const [file = join(import.meta.dirname, '..', 'docs', 'operations.md')] = process.argv.slice(2);
const table = /(?<=<!-- settings: .* -->\n).*(?=<!-- settings end -->)/s;

const rows = allSettings.map(
  ({ variable, fallback, meaning }) =>
    `| \`${variable}\` | ${fallback === '' ? '' : `\`${fallback}\``} | ${meaning.replaceAll('|', '\\|')} |\n`,
);
const text = readFileSync(file, 'utf8');
if (!table.test(text)) throw new Error(`${file} has no place for the table of settings.`);
writeFileSync(
  file,
  text.replace(table, () => `\n| variable | default | what it is |\n|---|---|---|\n${rows.join('')}\n`),
);
