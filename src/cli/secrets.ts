import type { Actor } from '../domain/audit-entry.ts';
import { newWebhookSecret } from '../events/webhooks/signature.ts';
import { mintLogKey } from '../evidence/log/signing-keys.ts';
import {
  countSeals,
  findUnopened,
  resealSecrets,
  type SealedKey,
  type Seals,
  sealedKeys,
  sealedLogKeys,
  sealedWebhookSecrets,
  sealedWebhookUrl,
} from '../keys/sealed-secrets.ts';
import { sealUrl } from '../keys/webhook-urls.ts';
import type { Registry } from '../operations/registry.ts';
import type { StoredKey } from '../store/caller-commands.ts';
import { allOf } from '../store/paging.ts';
import { isServed } from '../store/sqlite/serving-lock.ts';
import { localActor } from './actor.ts';
import type { Action, CommandGroup } from './command.ts';
import { changeRegistry, withRegistry } from './registry.ts';
import { refuseUnknownToServing } from './sealing.ts';

const reseal: Action = {
  usage: 'secrets reseal [--reason TEXT] [--json]',
  details: [
    'seals every secret of an API key, every secret and URL of a webhook, and every key of the evidence log anew under the first',
    'master key, so that the others can go. Works with the server running, which must know that key first: SIGHUP has it read',
    'the file anew. Cut off, it goes on where it was when run again.',
  ],
  run: (words, terminal) =>
    changeRegistry(terminal, async (registry, { dataDir }) => {
      const { execute, keyRing } = registry;
      const [{ name }] = keyRing.masterKeys;
      const refuse = () => refuseUnknownToServing(dataDir, registry);
      const before = await sealsIn(registry);
      const resealed = await resealSecrets(execute, keyRing, localActor(words, terminal), refuse);
      // It may have been restarted meanwhile, with other keys.
      refuse();
      const after = await sealsIn(registry);
      if (words.has('json'))
        return terminal.print(JSON.stringify({ masterKey: name, resealed, before, after }));
      terminal.print(`before       ${shown(before)}`);
      terminal.print(`sealed anew  ${resealed} under ${name}`);
      terminal.print(`after        ${shown(after)}`);
      for (const line of whatNow(registry, after)) terminal.print(line);
    }),
};

const reissue: Action = {
  usage: 'secrets reissue [--reason TEXT] [--json]',
  details: [
    'for a master key that is lost: ends each key whose secret does not open, and issues another one in its place, whose',
    'secret is shown this once; gives webhooks another secret likewise, and disables them: their URLs are lost with the key, and',
    'their owners have to set them again. The server has to be stopped: as long as it runs it has the lost master key in memory.',
  ],
  run: (words, terminal) =>
    withRegistry(
      terminal,
      async (registry, { dataDir }) => {
        if (isServed(dataDir))
          throw new Error('the server runs: stop it first, it would refuse the new keys.');
        const by = localActor(words, terminal);
        const lost = findUnopened(await keysIn(registry), registry.keyRing, nowS());
        for (const { keyId: replaced, caller } of lost) {
          const { key, apiSecret } = await registry.issuance.rotateKey(replaced, 0, by);
          const { keyId, apiKey } = key;
          const issued = { caller, replaced, keyId, apiKey, apiSecret };
          if (words.has('json')) terminal.print(JSON.stringify(issued));
          else
            for (const [name, value] of Object.entries(issued)) terminal.print(`${name.padEnd(9)} ${value}`);
        }
        const webhooks = await reissueWebhookSecrets(registry, by);
        for (const rotated of webhooks) {
          if (words.has('json')) terminal.print(JSON.stringify(rotated));
          else
            for (const [name, value] of Object.entries(rotated)) terminal.print(`${name.padEnd(9)} ${value}`);
        }
        const logKeys = await reissueLogKeys(registry, by);
        for (const { replaced, vkey } of logKeys)
          terminal.print(words.has('json') ? JSON.stringify({ replaced, vkey }) : `${replaced} → ${vkey}`);
        if (words.has('json')) return;
        const issued = lost.length + webhooks.length + logKeys.length;
        terminal.print(
          issued === 0
            ? 'every secret opens: there is nothing to issue anew'
            : `${issued} issued anew. The secrets are shown this once; hand them over by a safe way.`,
        );
      },
      { isMasterKeyLost: true },
    ),
};

/**
 * Gives another secret to the webhooks of which one in force does not open. Those whose URL does not open are disabled, at the
 * origin of that URL: their owners have to set it again.
 */
async function reissueWebhookSecrets({ execute, keyRing }: Registry, by: Actor) {
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

/** Ends the keys of the evidence log whose seeds do not open, and has another one sign in their place. */
async function reissueLogKeys({ execute, keyRing }: Registry, by: Actor) {
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
  summary: 'rotate the master key, and go on when it is lost',
  actions: [reseal, reissue],
  details: ['How to rotate the master key, step by step: docs/operate/security.md.'],
};

function keysIn({ execute }: Registry): Promise<StoredKey[]> {
  return Array.fromAsync(allOf((page) => execute({ kind: 'ListKeys', page })));
}

async function sealsIn({ execute }: Registry): Promise<readonly Seals[]> {
  return countSeals(await Array.fromAsync(sealedKeys(execute)), nowS());
}

const nowS = (): number => Math.floor(Date.now() / 1000);

/** How many secrets are sealed under which master key, in words. */
function shown(seals: readonly Seals[]): string {
  const texts = seals.map(({ masterKey, secrets, needed }) => {
    const ended = secrets - needed;
    return `${masterKey}: ${secrets}${ended === 0 ? '' : ` (${ended} of them of keys that have ended)`}`;
  });
  return texts.join(', ') || 'no secret';
}

/** Which master keys can go, and how. */
function whatNow({ keyRing }: Registry, after: readonly Seals[]): string[] {
  const [, ...others] = keyRing.masterKeys;
  const free = others.filter(({ name }) => !after.some(({ masterKey }) => masterKey === name));
  if (free.length === 0) return [];
  const names = free.map(({ name }) => name).join(', ');
  return [`${names} opens nothing any more: take it out of the file, then send the server SIGHUP`];
}
