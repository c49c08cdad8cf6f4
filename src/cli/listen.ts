import { createHmac } from 'node:crypto';
import { messageOf } from '../api/services/event-service.ts';
import { wholeNumber } from '../config/values.ts';
import { createSignedPost } from '../events/webhooks/attempt.ts';
import { createOutgoing } from '../events/webhooks/outgoing.ts';
import { webhookSecretOf } from '../events/webhooks/signature.ts';
import { checkTarget, createAddressPolicy } from '../events/webhooks/target.ts';
import { type Network, parseNetwork } from '../lib/networks.ts';
import { systemClock } from '../operations/registry.ts';
import { buildInfo } from '../packaging/build-info.ts';
import { readCredentials, senderFor } from './client-commands.ts';
import { type Command, readFlag, UsageError } from './command.ts';
import { eventPagesAfter, newestCursor, withinRate } from './event-feed.ts';

/** Every address: the developer chooses where the events go. */
const everywhere = ['0.0.0.0/0', '::/0'].map(parseNetwork) as Network[];

/** `artseal listen` */
export const listen: Command = {
  usage: 'listen --forward-to URL [--after N]',
  summary: 'forward the events of your platform to your own machine, signed as webhooks',
  details: [
    'Reads the event feed with the credentials that sign uses, so it needs no webhook endpoint and no address that others reach.',
    'Each event is sent once, as webhooks are, to an http:// URL of this machine or any https:// URL. Ctrl+C ends it.',
    'The secret that it prints verifies what arrives. It is derived from the API secret, and changes only with it.',
    '--after  begins after the event with this sequence; by default, with the next event.',
  ],
  run: async (words, { env, print, printError }) => {
    const url = words.required('forward-to');
    const fault = checkTarget(url, { policy: createAddressPolicy(everywhere), plainLoopback: true });
    if (fault !== undefined) throw new UsageError(`takes a --forward-to that ${fault}`);
    const given = readFlag(words, 'after', wholeNumber(0, Number.MAX_SAFE_INTEGER));
    const send = withinRate(senderFor(env));
    const { apiSecret } = readCredentials(env);
    const secret = webhookSecretOf(createHmac('sha256', apiSecret).update('artseal listen').digest());
    const outgoing = createOutgoing({
      ...{ networks: everywhere, plainLoopback: true, clock: systemClock },
      ...{ proxy: undefined, authorities: undefined },
    });
    const post = createSignedPost({ outgoing, clock: systemClock, version: buildInfo.version });
    const { signal } = new AbortController();
    const after = given ?? (await newestCursor(send));
    print(`Signing secret: ${secret}`);
    print(`Forwarding events after ${after} to ${url}`);
    for await (const events of eventPagesAfter(send, after, printError)) {
      for (const event of events) {
        const startedMs = performance.now();
        const message = messageOf(event);
        const { httpStatus, error } = await post({ url, secrets: [secret], message, signal });
        const ms = Math.round(performance.now() - startedMs);
        const result = error === null ? httpStatus : `failed: ${error}`;
        print(`${event.at}  ${event.type.padEnd(24)}  #${event.sequence}  ${result}  ${ms} ms`);
      }
    }
    return undefined;
  },
};
