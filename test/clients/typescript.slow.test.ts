import { join } from 'node:path';
import { test } from 'node:test';
import { assertSale, run } from './client-program.ts';

const folder = join(import.meta.dirname, 'typescript');

test('a TypeScript client generated from openapi.yaml compiles strictly and makes its calls', async (t) => {
  await run('npm', ['run', '--silent', 'build'], { cwd: folder });
  await assertSale(t, process.execPath, [join(folder, 'calls.ts')]);
});
