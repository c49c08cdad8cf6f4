import { readFileSync } from 'node:fs';
import { signedHeaders } from '../client/sign.ts';
import { clientVariables } from '../config/config.ts';
import { commandName } from '../packaging/build-info.ts';
import { readTarget } from './arguments.ts';
import { readCredentials } from './client-settings.ts';
import { type Command, exitCodes } from './command.ts';

/** `artseal sign` */
export const sign: Command = {
  usage: 'sign METHOD TARGET [--body FILE|-]',
  summary: 'print the four signed headers of a request, ready for curl',
  details: [
    'TARGET is the path with its query, exactly as it will be sent; - reads the body from standard input.',
    `Signs with ${clientVariables.apiKey} and ${clientVariables.apiSecret}, or with the sandbox's own credentials.`,
    'The body must be sent byte for byte as signed: curl --data-binary @FILE.',
    `Use: curl -H @<(${commandName} sign GET /api/v1/provenance/AS-2026-000001) http://…`,
  ],
  run: async (words, { env, print }) => {
    const target = readTarget(words.required('TARGET'));
    const credentials = readCredentials(env);
    const method = words.required('METHOD').toUpperCase();
    const headers = signedHeaders(credentials, { method, target, body: readBody(words.text('body')) });
    for (const [name, value] of Object.entries(headers)) print(`${name}: ${value}`);
    return exitCodes.done;
  },
};

/** The bytes of a file, or of standard input for `-`. */
function readBody(file: string | undefined): Uint8Array {
  if (file === undefined) return new Uint8Array();
  try {
    return readFileSync(file === '-' ? 0 : file);
  } catch (cause) {
    throw new Error(`--body ${file} cannot be read`, { cause });
  }
}
