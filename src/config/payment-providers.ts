import { mangopay } from '../payments/mangopay/settings.ts';
import type { InstitutionKind } from '../payments/provider.ts';
import { simulated } from '../payments/simulated/settings.ts';
import { stripe } from '../payments/stripe/settings.ts';

/** The institutions that a deployment can choose. */
export const institutions: readonly InstitutionKind[] = [simulated, stripe, mangopay];
