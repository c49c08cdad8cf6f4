import type { Tier } from '../../domain/caller.ts';
import { tiers } from '../../domain/caller.ts';
import type { Clock } from '../../domain/clock.ts';
import {
  checkRegistration,
  emailMax,
  formRates,
  formRegistrationsMax,
  type RegistrationTexts,
  registrationBounds,
} from '../../domain/registration.ts';
import type { Violation } from '../../domain/violation.ts';
import { createIssuance } from '../../keys/issuance.ts';
import { mintRegistrationId, tokenHash } from '../../keys/mint.ts';
import { givenNetwork } from '../../lib/networks.ts';
import { createKeyedRates } from '../../lib/rates.ts';
import type { Execute } from '../../store/store.ts';
import type { ServiceDependencies } from './dependencies.ts';

/** What a person enters in the form. */
export interface FormTexts extends RegistrationTexts {
  readonly tier: string;
}

/** What became of a form. FULL: the form takes no more. LIMITED: it was sent too often, from this network or from all. */
export type FormResult =
  | { readonly kind: 'TAKEN' | 'FULL' }
  | { readonly kind: 'INVALID'; readonly violations: readonly Violation[] }
  | { readonly kind: 'LIMITED'; readonly retryAfterS: number };

/** A claimed one-time link. */
interface Claimed {
  readonly platform: string;
  readonly apiKey: string;
  readonly apiSecret: string;
}

/**
 * The public part of the access desk: the form, and one-time links to API keys. `execute` rejects if too many calls without a signature
 * are running.
 */
export function createPublicAccess(
  dependencies: Pick<ServiceDependencies, 'clock' | 'nowS' | 'digestEmail' | 'keyRing' | 'environment'>,
  execute: Execute,
) {
  const { clock, nowS, digestEmail } = dependencies;
  const takeRate = createFormRates(clock);
  const issuance = createIssuance({ ...dependencies, execute });
  return {
    form: {
      limits: formLimits,
      /**
       * Pre-registers what a person entered, at a client address. An address that is known changes nothing, and the result is the same.
       * Throws ApiError.
       */
      take: async ({ tier, ...texts }: FormTexts, client: string): Promise<FormResult> => {
        const violations = [...checkRegistration(texts), ...checkTier(tier)];
        if (violations.length > 0) return { kind: 'INVALID', violations };
        const retryAfterS = takeRate(client);
        if (retryAfterS > 0) return { kind: 'LIMITED', retryAfterS };
        const named = { registrationId: mintRegistrationId(), emailDigest: digestEmail(texts.email) };
        const registration = { ...named, ...texts, tier: tier as Tier };
        const isTaken = await execute({
          kind: 'TakeForm',
          atS: nowS(),
          max: formRegistrationsMax,
          registration,
        });
        return { kind: isTaken ? 'TAKEN' : 'FULL' };
      },
    },
    /** Returns the name of the platform whose key a link issues; undefined if it is not valid, or was used. Throws ApiError. */
    findLink: async (token: string): Promise<string | undefined> => {
      const found = await execute({ kind: 'FindAccessLink', sha256: tokenHash(token), nowS: nowS() });
      return found?.platform ?? undefined;
    },
    /** Uses a link up: issues the key. Undefined if it is not valid, or was used. Throws ApiError. */
    claimLink: async (token: string): Promise<Claimed | undefined> => {
      const issued = await issuance.claimKey(token);
      if (issued === undefined) return undefined;
      const { key, apiSecret } = issued;
      return { platform: key.caller, apiKey: key.apiKey, apiSecret };
    },
  };
}

/** The bounds of the fields, and the tiers to choose from. */
const formLimits = {
  email: emailMax,
  name: registrationBounds.name.max,
  intendedUse: registrationBounds.intendedUse.max,
  tiers: Object.keys(tiers),
};

function checkTier(tier: string): Violation[] {
  const words = Object.keys(tiers);
  return words.includes(tier) ? [] : [{ field: 'tier', rule: `must be ${words.join(' or ')}` }];
}

/** Returns the function that takes a form of a client address: 0, or how many seconds to wait. */
function createFormRates(clock: Pick<Clock, 'monotonicMs'>): (client: string) => number {
  const takeRate = createKeyedRates(clock, { each: formRates.network, total: formRates.total });
  // The /24 of an IPv4 address: `givenNetwork` already returns the /48 of an IPv6 address.
  return (client) => takeRate(givenNetwork(client).replace(/\.\d+$/, '.0'));
}
