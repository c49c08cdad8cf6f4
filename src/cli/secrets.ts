import {
  MaintenanceService,
  type MasterKeyUse,
  ReencryptSecretsResponseSchema,
  type RotateSecretsResponse,
} from '../../gen/artseal/v1/maintenance_pb.ts';
import { writeMessage } from '../api/message-json.ts';
import { type Action, type CommandGroup, fieldLines } from './command.ts';
import { calls } from './session.ts';

const reencrypt: Action = {
  usage: 'secrets re-encrypt [--reason TEXT] [--json]',
  details: [
    'Re-encrypts the secrets of API keys, the secrets and URLs of webhooks, and the keys of the evidence log under the first master',
    'key, so that you can remove the others. A running server uses the master keys that it has read: run artseal reload before. If',
    'the command is interrupted, run it again: it continues.',
  ],
  ...calls(async ({ client, reason, show }) => {
    const response = await client(MaintenanceService).reencryptSecrets({ reason });
    const { masterKey, reencrypted, before, after, unusedMasterKeys } = response;
    const { unusedMasterKeys: _, ...shown } = writeMessage(ReencryptSecretsResponseSchema, response);
    const unused = `${unusedMasterKeys.join(', ')} decrypts no secret any more: remove it from the file, then run artseal reload`;
    show(
      shown,
      `before        ${usesText(before)}`,
      `re-encrypted  ${reencrypted} under ${masterKey}`,
      `after         ${usesText(after)}`,
      ...(unusedMasterKeys.length === 0 ? [] : [unused]),
    );
  }),
};

const rotate: Action = {
  usage: 'secrets rotate [--reason TEXT] [--json]',
  details: [
    'For a lost master key. Replaces each API key whose secret cannot be opened, and shows the new secret once. Replaces the',
    'secrets of webhooks likewise, and disables the webhooks: their URLs are lost, and their owners must set them again. Stop the',
    'server first: a running server still has the lost master key, and finds nothing to replace.',
  ],
  ...calls(
    async ({ client, reason, show, print, words }) => {
      let [issued, hasMore] = [0, true];
      while (hasMore) {
        const response = await client(MaintenanceService).rotateSecrets({ reason });
        for (const replacement of replacementsIn(response)) {
          issued += 1;
          show(replacement, ...fieldLines(replacement, 9));
        }
        hasMore = response.hasMore;
      }
      if (words.has('json')) return undefined;
      print(
        issued === 0
          ? 'every secret can be opened: there is nothing to replace. A running server still has a lost master key: stop it first'
          : `${issued} replaced. The secrets are shown only once. Hand them over by a secure channel.`,
      );
      return undefined;
    },
    { isMasterKeyLost: true },
  ),
};

/** `artseal secrets` */
export const secrets: CommandGroup = {
  summary: 're-encrypt secrets after a rotation of the master key, or replace those that a lost one protects',
  actions: [reencrypt, rotate],
  details: ['To rotate the master key step by step, see docs/operate/security.md.'],
};

/** What replaced lost secrets, with the members that each has. */
function replacementsIn({ apiKeys, webhooks, logKeys }: RotateSecretsResponse): object[] {
  return [
    ...apiKeys.map(({ caller, replacedKeyId: replaced, keyId, apiKey, apiSecret }) => {
      return { caller, replaced, keyId, apiKey, apiSecret };
    }),
    ...webhooks.map(({ caller, webhookId, secret, lostUrl }) => {
      return { caller, webhookId, ...(secret && { secret }), ...(lostUrl && { lostUrl }) };
    }),
    ...logKeys.map(({ replacedVkey: replaced, vkey }) => ({ replaced, vkey })),
  ];
}

/** How many secrets are encrypted with each master key. */
function usesText(uses: readonly MasterKeyUse[]): string {
  const texts = uses.map(({ masterKey, secrets: count, needed }) => {
    const ended = count - needed;
    return `${masterKey}: ${count}${ended === 0 ? '' : ` (${ended} of ended keys)`}`;
  });
  return texts.join(', ') || 'no secret';
}
