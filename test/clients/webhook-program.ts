import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import type { WebhookCase } from '../support/webhook-cases.ts';

/** A request for the programs of test/clients/webhooks: a line of base64 values with tabs. */
function line({ secret, nowS, headers, body }: WebhookCase): string {
  const sent = ['webhook-id', 'webhook-timestamp', 'webhook-signature'].map((name) => headers[name] ?? '');
  const parts = [secret, String(nowS), ...sent, body];
  return `${parts.map((part) => Buffer.from(part).toString('base64')).join('\t')}\n`;
}

/**
 * Runs a program of test/clients/webhooks. Resolves with name and output line of each request; rejects with its errors if it
 * fails.
 */
export async function answersOf(
  program: string,
  words: readonly string[],
  cases: readonly WebhookCase[],
  place: { readonly cwd?: string; readonly env?: NodeJS.ProcessEnv } = {},
): Promise<[name: string, answer: string | undefined][]> {
  const child = spawn(program, words, place);
  const ended = once(child, 'close');
  child.stdin.end(cases.map(line).join(''));
  const [said, errors] = await Promise.all([text(child.stdout), text(child.stderr)]);
  const [code] = await ended;
  if (code !== 0) throw new Error(`${program} ended with ${code}: ${said}${errors}`);
  const lines = said.trim().split(/\r?\n/);
  return cases.map(({ name }, index) => [name, lines[index]]);
}

/** The expected output. */
export function expectedOf(cases: readonly WebhookCase[]): [name: string, answer: string][] {
  return cases.map(({ name, apiError }) => [name, apiError === undefined ? 'accepted' : 'refused']);
}
