import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readWords } from '../../src/cli/command.ts';
import { createCompletion } from '../../src/cli/completion.ts';
import { runHere } from '../support/artseal.ts';

test('the choices of usage lines are completed, and no name of a value', async () => {
  const { printed } = await runHere(['completion', 'bash'], {});
  const choices = Array.from(
    printed.join('\n').matchAll(/ --[a-z-]+'\) next='([^']+)'/g),
    ([, words]) => words,
  );
  assert.deepEqual(
    new Set(choices),
    new Set([
      'TRIAL STANDARD ENTERPRISE',
      'unlimited',
      'none',
      'BUYER SELLER',
      'ENABLED DISABLED',
      'PENDING WAITING DELIVERED FAILED',
    ]),
  );
});

test('common flags are completed like those of the usage line', async () => {
  const common = { usage: '[--url URL]', details: [] };
  const run = async () => undefined;
  const work = { usage: 'work [--json]', summary: 'work', details: [], common, run };
  const { actions } = createCompletion(async () => [{ title: 'Work', commands: new Map([['work', work]]) }]);
  const printed: string[] = [];
  for (const action of actions) {
    const terminal = { env: {}, print: (line: string) => printed.push(line), printError: assert.fail };
    await action.run(readWords(action, []), terminal);
  }
  const [bash = '', zsh = '', fish = ''] = printed;
  for (const script of [bash, zsh]) assert.match(script, /^ {2}'work'\) .* flags='--json --url --help' ;;$/m);
  assert.match(fish, /^complete -c artseal -n '__artseal_after work' -l url -x /m);
});
