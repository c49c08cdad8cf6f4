import assert from 'node:assert/strict';
import type { EventType } from '../../src/domain/event.ts';
import { runHere } from './artseal.ts';

/** Runs `artseal trigger`, which must print its calls and then an event of this type; returns the event. */
export async function triggered(type: EventType, env: Record<string, string>, ...flags: string[]) {
  const { code, printed, errors } = await runHere(['trigger', type, ...flags], env);
  assert.deepEqual([code, errors], [0, []], type);
  const lines = printed.slice(0, -1);
  assert.ok(lines.length > 0, type);
  for (const line of lines)
    assert.match(line, /^(POST|GET|DELETE) \/api\/v1\/\S+ {2}\d{3} {2}[0-9a-f-]{36}$|^(Rotated|Disabled) /);
  const event = JSON.parse(printed.at(-1) ?? '');
  assert.equal(event.type, type);
  return event;
}
