import { createRestClient } from '../client/rest.ts';
import { clientVariables } from '../config.ts';
import { readTarget, readWords } from './arguments.ts';
import { publicUrl, readCredentials } from './client-settings.ts';
import { type Command, exitCodes } from './command.ts';

/** `artseal call` */
export const call: Command = {
  usage: 'call METHOD TARGET [JSON] [--idempotency-key KEY]',
  summary: 'sign a request, send it and print the answer',
  details: [
    `Calls ${clientVariables.url}, or ARTSEAL_PUBLIC_ADDR, with the credentials that sign uses.`,
    'The status line goes to standard error, the body to standard output; exit code 1 for an error answer.',
  ],
  run: async (words, { env, print }) => {
    const read = readWords(words, [2, 3], { 'idempotency-key': { type: 'string' } });
    const [method = '', path, body] = read.positionals;
    const key = read.text('idempotency-key');
    const target = readTarget(path);
    const answer = await createRestClient(publicUrl(env), readCredentials(env)).send(
      method.toUpperCase(),
      target,
      body,
      key === undefined ? {} : { 'Idempotency-Key': key },
    );
    process.stderr.write(`HTTP ${answer.status} ${answer.headers.get('X-Request-Id') ?? ''}\n`);
    print(await answer.text());
    return answer.ok ? exitCodes.done : exitCodes.failed;
  },
};
