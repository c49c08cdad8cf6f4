import { join } from 'node:path';
import { projectFolder } from './project.ts';
import { writePage } from './self-contained-page.ts';

// Writes the page on which people check evidence bundles into docs/verify.html, or into the file that is named.
await writePage(
  {
    source: 'build/verify-page',
    modules: /^(build\/verify-page|src\/evidence\/(formats|verifier)|node_modules\/@noble)\//,
  },
  process.argv[2] ?? join(projectFolder, 'docs', 'verify.html'),
);
