import { exampleArtwork } from '../domain/example.ts';
import { openRestClient } from './client-settings.ts';
import { type Command, exitCodes } from './command.ts';

/** `artseal demo` */
export const demo: Command = {
  usage: 'demo',
  summary: 'make the documented calls and a release against a running sandbox',
  details: ['Files an artwork, asks for its provenance, sells it in escrow, and shows the TRANSFER record.'],
  run: async (_, { env, print }) => {
    const rest = openRestClient(env);

    async function show(title: string, method: string, target: string, body?: object) {
      const json = body === undefined ? undefined : JSON.stringify(body);
      print(`\n# ${title}\n${method} ${target}${json === undefined ? '' : `\n${json}`}`);
      const answer = await rest.send(method, target, json);
      const text = await answer.text();
      print(`→ ${answer.status} ${text}`);
      if (!answer.ok) throw new Error(`${title} was refused.`);
      return JSON.parse(text);
    }

    const { filingNo } = await show('Filing', 'POST', '/api/v1/filing', exampleArtwork);
    await show('Provenance', 'GET', `/api/v1/provenance/${filingNo}`);
    const { escrowId } = await show('Escrow', 'POST', '/api/v1/escrow', {
      filingNo,
      type: 'GUARANTEE',
      amount: exampleArtwork.price,
      buyerId: 'buyer-1',
      sellerId: 'seller-1',
    });
    await show('Release', 'POST', `/api/v1/escrow/${escrowId}/release`);
    await show('Provenance, with the TRANSFER record', 'GET', `/api/v1/provenance/${filingNo}`);
    return exitCodes.done;
  },
};
