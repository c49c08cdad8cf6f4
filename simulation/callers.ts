import { type SentCredentials, signature } from '../src/api/authentication.ts';
import type { ServicePrincipal } from '../src/api/operation.ts';
import type { Actor } from '../src/domain/audit-entry.ts';
import { platformScopes } from '../src/domain/token.ts';
import { createKeyRing } from '../src/keys/key-ring.ts';
import type { NewPlatform } from '../src/store/caller-commands.ts';
import { executorOf, type Store } from '../src/store/store.ts';
import { worldLimits } from './limits.ts';
import { bodyOf, signedMethod, targetOf } from './listener.ts';
import { partiesOf } from './parties.ts';
import type { Request } from './requests.ts';

/** A platform with its credentials. */
export interface Platform {
  readonly kind: 'platform';
  readonly callerId: number;
  readonly caller: string;
  /** In calls; undefined for unlimited. */
  readonly monthlyQuota: number | undefined;
  readonly apiKey: string;
  readonly apiSecret: string;
}

/** A platform or an internal system. */
export type Caller = Platform | ServicePrincipal;

/** The callers of a simulation. */
export interface Callers {
  /** The platforms that sell. */
  readonly platforms: readonly Platform[];
  /** A platform with a low rate and a low quota. */
  readonly limited: Platform;
  readonly internal: ServicePrincipal;
}

/** The key ring of the simulated deployment. */
export const keyRing = createKeyRing([{ name: 'main', key: Buffer.alloc(32, 9) }]);

/** The operator, who registers callers and reviews orders. */
export const operator: Actor = { actor: 'user person (1)', atS: 0, reason: undefined };

/** Registers the callers, with parties for this number of sessions. */
export async function registerCallers(store: Store, sessions: number): Promise<Callers> {
  const execute = executorOf(store);
  async function register(
    name: string,
    terms: Pick<NewPlatform, 'tier' | 'monthlyQuota'>,
  ): Promise<Platform> {
    const [keyId, apiKey, apiSecret] = [`key-${name}`, `ak-${name}`, `sk-${name}`];
    const key = { keyId, apiKey, sealedSecret: keyRing.seal(apiSecret, keyId), createdAtS: 0 };
    const { callerId, caller } = await execute({
      kind: 'AddPlatform',
      by: operator,
      platform: { name, ...terms },
      key,
    });
    return { kind: 'platform', callerId, caller, monthlyQuota: terms.monthlyQuota, apiKey, apiSecret };
  }
  const platforms: Platform[] = [];
  for (let number = 1; number <= worldLimits.platforms; number += 1) {
    platforms.push(await register(`platform-${number}`, { tier: 'ENTERPRISE', monthlyQuota: undefined }));
  }
  const parties = platforms.flatMap(({ caller }) => partiesOf(caller, sessions));
  await execute({
    kind: 'ImportParties',
    by: operator,
    parties,
    callers: [],
    violations: [],
    isTrial: false,
  });
  const limited = await register('limited', { tier: 'TRIAL', monthlyQuota: worldLimits.monthlyQuota });
  const granted = { scopes: platformScopes, expiresAtS: null, platform: undefined };
  const token = { tokenId: 't1', ...granted, createdAtS: 0, sha256: Buffer.alloc(32) };
  const { callerId, caller } = await execute({ kind: 'AddToken', by: operator, name: 'internal', token });
  return {
    platforms,
    limited,
    internal: { kind: 'service', tokenId: 't1', scopes: platformScopes, callerId, caller, isPlatform: false },
  };
}

/** Signs a request of a platform. `nowMs` is in Unix milliseconds. */
export function sign(platform: Platform, request: Request, nowMs: number, nonce: string): SentCredentials {
  const timestamp = String(Math.floor(nowMs / 1000));
  const [target, body] = [targetOf(request), bodyOf(request)];
  const canonical = { method: signedMethod, target, body, timestamp, nonce };
  const signed = signature(canonical, platform.apiSecret);
  return { apiKey: [platform.apiKey], timestamp: [timestamp], nonce: [nonce], signature: [signed] };
}
