import { clientVariables } from '../config/config.ts';
import { readTarget } from './arguments.ts';
import { openRestClient } from './client-settings.ts';
import { type Command, exitCodes, UsageError } from './command.ts';

/** `artseal call` */
export const call: Command = {
  usage: 'call METHOD TARGET [JSON] [--idempotency-key KEY]',
  summary: 'sign a request, send it and print the answer',
  details: [
    `Calls ${clientVariables.url}, or ARTSEAL_PUBLIC_ADDR, with the credentials that sign uses.`,
    'The status line goes to standard error, the body to standard output; exit code 1 for an error answer.',
  ],
  run: async (words, { env, print, printError }) => {
    const method = words.required('METHOD').toUpperCase();
    const target = readTarget(words.required('TARGET'));
    const json = words.text('JSON');
    if (json !== undefined && (method === 'GET' || method === 'HEAD')) {
      throw new UsageError(`takes no JSON with ${method}, which has no body`);
    }
    const key = words.text('idempotency-key');
    const answer = await openRestClient(env).send(
      method,
      target,
      json,
      key === undefined ? {} : { 'Idempotency-Key': key },
    );
    printError(`HTTP ${answer.status} ${answer.headers.get('X-Request-Id') ?? ''}`);
    print(await answer.text());
    return answer.ok ? exitCodes.done : exitCodes.failed;
  },
};
