import { join } from 'node:path';
import { projectFolder } from './project.ts';
import { writePage } from './self-contained-page.ts';

// Writes the console into src/console/console.html, or into the file that is named.
await writePage(
  {
    source: 'src/console',
    entry: 'main.tsx',
    isMinified: true,
    modules:
      /^(src\/console|gen|src\/evidence\/(formats|verifier)|node_modules\/(@noble|@bufbuild\/protobuf|@connectrpc\/connect(-web)?|preact))\//,
    policy: ["connect-src 'self'", 'img-src data:'],
  },
  process.argv[2] ?? join(projectFolder, 'src', 'console', 'console.html'),
);
