import { hash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { projectFolder } from './project.ts';
import { writePage } from './self-contained-page.ts';

// Writes the page on which people check evidence bundles into docs/verify.html, and its SHA-256 into docs/evidence.md. If a file is
// named, it writes the page there, and nothing else.
const docs = join(projectFolder, 'docs');
const [file = join(docs, 'verify.html')] = process.argv.slice(2);
await writePage(
  {
    source: 'build/verify-page',
    modules: /^(build\/verify-page|src\/evidence\/(formats|verifier)|node_modules\/@noble)\//,
  },
  file,
);
if (process.argv.length === 2) {
  const document = join(docs, 'evidence.md');
  const sha256 = hash('sha256', readFileSync(file));
  const place = /(?<=Its SHA-256 in this version is\s+`)[^`]*(?=`)/;
  writeFileSync(document, readFileSync(document, 'utf8').replace(place, sha256));
}
