import { mangopay } from '../payments/mangopay/settings.ts';
import type { ProviderKind } from '../payments/provider.ts';
import { simulated } from '../payments/simulated/settings.ts';
import { stripe } from '../payments/stripe/settings.ts';

/** The providers that a deployment can choose. */
export const providers: readonly ProviderKind[] = [simulated, stripe, mangopay];
