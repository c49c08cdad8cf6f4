import type { Actor } from '../domain/audit-entry.ts';
import { newWebhookSecret } from '../events/webhooks/signature.ts';
import { mintLogKey } from '../evidence/log/signing-keys.ts';
import {
  countSeals,
  findUnopened,
  reencryptSecrets,
  type SealedKey,
  type Seals,
  sealedKeys,
  sealedLogKeys,
  sealedWebhookSecrets,
  sealedWebhookUrl,
} from '../keys/sealed-secrets.ts';
import { sealUrl } from '../keys/webhook-urls.ts';
import type { Registry } from '../operations/registry.ts';
import { allOf } from '../store/paging.ts';
import { isServed } from '../store/sqlite/serving-lock.ts';
import { type Action, type CommandGroup, fieldLines } from './command.ts';
import { changes, nowS, reads, refuseUnknownToServing } from './session.ts';

const reencrypt: Action = {
  usage: 'secrets re-encrypt [--reason TEXT] [--json]',
  details: [
    'Re-encrypts the secrets of API keys, the secrets and URLs of webhooks, and the keys of the evidence log under the first master',
    'key, so that you can remove the others. The server may run, but must have that key: SIGHUP reloads the file. If the command',
    'is interrupted, run it again: it continues.',
  ],
  run: changes(async (session) => {
    const { execute, keyRing, actor, show } = session;
    const [{ name: masterKey }, ...others] = keyRing.masterKeys;
    const refuse = () => refuseUnknownToServing(session);
    const before = await sealsIn(session);
    const reencrypted = await reencryptSecrets(execute, keyRing, actor(), refuse);
    // The server may have been restarted meanwhile, with other keys.
    refuse();
    const after = await sealsIn(session);
    const unused = others.filter(({ name }) => !after.some((seals) => seals.masterKey === name));
    const names = unused.map(({ name }) => name).join(', ');
    show(
      { masterKey, reencrypted, before, after },
      `before        ${sealsText(before)}`,
      `re-encrypted  ${reencrypted} under ${masterKey}`,
      `after         ${sealsText(after)}`,
      ...(unused.length === 0
        ? []
        : [`${names} opens no secret any more: remove it from the file, then send SIGHUP to the server`]),
    );
  }),
};

const rotate: Action = {
  usage: 'secrets rotate [--reason TEXT] [--json]',
  details: [
    'For a lost master key. Replaces each API key whose secret cannot be opened, and shows the new secret once. Replaces the',
    'secrets of webhooks likewise, and disables the webhooks: their URLs are lost, and their owners must set them again. Stop the',
    'server before: a running server still has the lost master key.',
  ],
  run: reads(
    async ({ config, actor, show, print, words, ...registry }) => {
      if (isServed(config.dataDir))
        throw new Error('the server runs: stop it first, since it would reject the new keys.');
      const by = actor();
      let issued = 0;
      for (const rotated of [rotateKeys, rotateWebhookSecrets, rotateLogKeys])
        for (const replacement of await rotated(registry, by)) {
          issued += 1;
          show(replacement, ...fieldLines(replacement, 9));
        }
      if (words.has('json')) return;
      print(
        issued === 0
          ? 'every secret can be opened: there is nothing to replace'
          : `${issued} replaced. The secrets are shown only once. Hand them over by a secure channel.`,
      );
    },
    { isMasterKeyLost: true },
  ),
};

/** Replaces the API keys whose secrets cannot be opened. */
async function rotateKeys({ execute, keyRing, issuance }: Registry, by: Actor) {
  const keys = await Array.fromAsync(allOf((page) => execute({ kind: 'ListKeys', page })));
  const issued = [];
  for (const { keyId: replaced, caller } of findUnopened(keys, keyRing, nowS())) {
    const { key, apiSecret } = await issuance.rotateKey(replaced, 0, by);
    issued.push({ caller, replaced, keyId: key.keyId, apiKey: key.apiKey, apiSecret });
  }
  return issued;
}

/**
 * Replaces the webhook secrets that cannot be opened. Disables webhooks whose URL cannot be opened, and leaves them the origin
 * of that URL: their owners must set it again.
 */
async function rotateWebhookSecrets({ execute, keyRing }: Registry, by: Actor) {
  const webhooks = await Array.fromAsync(
    allOf((page) => execute({ kind: 'ListWebhooks', owner: undefined, page })),
  );
  const isLost = (sealed: readonly SealedKey[]) => findUnopened(sealed, keyRing, by.atS).length > 0;
  const rotated = [];
  for (const webhook of webhooks) {
    const { webhookId, caller, origin } = webhook;
    const name = { webhookId, owner: undefined, by };
    const isUrlLost = isLost(sealedWebhookUrl(webhook));
    if (isUrlLost) {
      const change = { url: sealUrl(keyRing, webhookId, origin), status: 'DISABLED' } as const;
      await execute({ kind: 'ChangeWebhook', ...name, change });
    }
    const secret = isLost(sealedWebhookSecrets(webhook)) ? newWebhookSecret() : undefined;
    if (secret !== undefined) {
      const sealedSecret = keyRing.seal(secret, webhookId);
      await execute({ kind: 'RotateWebhookSecret', ...name, sealedSecret, previousEndsAtS: by.atS });
    }
    if (secret === undefined && !isUrlLost) continue;
    rotated.push({ caller, webhookId, ...(secret && { secret }), ...(isUrlLost && { lostUrl: origin }) });
  }
  return rotated;
}

/** Ends the keys of the evidence log whose seeds cannot be opened, and adds one new key. */
async function rotateLogKeys({ execute, keyRing }: Registry, by: Actor) {
  const state = await execute({ kind: 'GetLog' });
  const { origin } = state;
  const lost = findUnopened(sealedLogKeys(state), keyRing, by.atS);
  if (lost.length === 0 || origin === undefined) return [];
  for (const { keyId } of lost) await execute({ kind: 'EndLogKey', vkey: keyId, atS: by.atS });
  const key = mintLogKey(origin, keyRing, by.atS);
  await execute({ kind: 'RotateLogKey', by, key, endsAtS: by.atS });
  return lost.map(({ keyId }) => ({ replaced: keyId, vkey: key.vkey }));
}

/** `artseal secrets` */
export const secrets: CommandGroup = {
  summary: 're-encrypt secrets after a rotation of the master key, or replace those that a lost one protects',
  actions: [reencrypt, rotate],
  details: ['To rotate the master key step by step, see docs/operate/security.md.'],
};

async function sealsIn({ execute }: Registry): Promise<readonly Seals[]> {
  return countSeals(await Array.fromAsync(sealedKeys(execute)), nowS());
}

/** How many secrets are sealed under each master key. */
function sealsText(seals: readonly Seals[]): string {
  const texts = seals.map(({ masterKey, secrets, needed }) => {
    const ended = secrets - needed;
    return `${masterKey}: ${secrets}${ended === 0 ? '' : ` (${ended} of ended keys)`}`;
  });
  return texts.join(', ') || 'no secret';
}
