import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { type TestContext, test } from 'node:test';
import { perform } from '../../src/store/store.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { sqliteInThisThread } from './engines.ts';
import { firstPage, openStore } from './promises/fixtures.ts';

const script = join(import.meta.dirname, 'children', 'file-artworks.ts');

/** How far ahead children begin together, so that all of them have started. */
const startUpMs = 700;

function fileInAChild(t: TestContext, name: string, count: number, beginMs: number, folders: string[]) {
  const words = [script, name, String(count), String(beginMs), ...folders];
  const child = spawn(process.execPath, words, { stdio: ['ignore', 'pipe', 'pipe'] });
  t.after(() => child.kill('SIGKILL'));
  return child;
}

/** The numbers that a child printed, a list a folder. */
async function printedBy(child: ChildProcess & { stdout: NodeJS.ReadableStream }, folders: number) {
  const errors = child.stderr ? text(child.stderr) : Promise.resolve('');
  const [output, [code]] = await Promise.all([text(child.stdout), once(child, 'close')]);
  assert.equal(code, 0, await errors);
  const lines = output.trimEnd().split('\n');
  return Array.from({ length: folders }, (_, place) =>
    lines.filter((line) => line.startsWith(`${place} `)).map((line) => line.slice(2)),
  );
}

const numbers = (count: number) =>
  Array.from({ length: count }, (_, place) => `AS-2026-${String(place + 1).padStart(6, '0')}`);

test('processes that make and use the same stores take turns, and share one sequence of numbers', async (t) => {
  const folders = Array.from({ length: 6 }, () => join(temporaryFolder(t), 'new', 'folder'));
  const beginMs = Date.now() + startUpMs;
  const children = ['one', 'two', 'three'].map((name) => fileInAChild(t, name, 8, beginMs, folders));
  const printed = await Promise.all(children.map((child) => printedBy(child, folders.length)));
  for (const [place, dataDir] of folders.entries()) {
    const answered = printed.flatMap((lists) => lists[place] ?? []);
    assert.deepEqual(answered.toSorted(), numbers(24), `folder ${place}`);
    const store = await openStore(t, sqliteInThisThread, dataDir);
    const keys = await perform(store, { kind: 'ListKeys', page: firstPage(10) });
    assert.deepEqual(keys.items.map(({ caller }) => caller).toSorted(), ['one', 'three', 'two']);
  }
});
