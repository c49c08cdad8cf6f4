import type { Violation } from '../../domain/violation.ts';
import type { PaymentOrder } from '../provider.ts';

/**
 * ISO 4217 codes in which Stripe charges cards, by https://docs.stripe.com/currencies. Which of them a connected account may
 * use depends on its country, so Stripe can still decline one.
 */
export const chargedCurrencies: readonly string[] = (
  'AED AFN ALL AMD ANG AOA ARS AUD AWG AZN BAM BBD BDT BGN BHD BIF BMD BND BOB BRL BSD BWP BYN BZD CAD CDF CHF CLP CNY COP ' +
  'CRC CVE CZK DJF DKK DOP DZD EGP ETB EUR FJD FKP GBP GEL GIP GMD GNF GTQ GYD HKD HNL HTG HUF IDR ILS INR JMD JOD JPY KES ' +
  'KGS KHR KMF KRW KWD KYD KZT LAK LBP LKR LRD LSL MAD MDL MKD MMK MNT MOP MUR MVR MWK MXN MYR MZN NAD NGN NIO NOK NPR NZD ' +
  'OMR PAB PEN PGK PHP PKR PLN PYG QAR RON RSD RUB RWF SAR SBD SCR SEK SGD SHP SLE SOS SRD SZL THB TJS TND TOP TRY TTD TWD ' +
  'TZS UAH USD UYU UZS VND VUV WST XAF XCD XCG XOF XPF YER ZAR ZMW'
).split(' ');

/** Minimum amounts in minor units, by the table of that page. For other currencies only Stripe knows the minimum. */
const least: Readonly<Record<string, bigint>> = {
  AED: 200n,
  CZK: 1500n,
  DKK: 250n,
  GBP: 30n,
  HKD: 400n,
  HUF: 17500n,
  MXN: 1000n,
  MYR: 200n,
  NOK: 300n,
  PLN: 200n,
  RON: 200n,
  SEK: 300n,
  THB: 1000n,
  ...Object.fromEntries(
    'ARS AUD BRL CAD CHF COP EUR IDR ILS INR JPY KRW NZD PHP RUB SGD USD ZAR'
      .split(' ')
      .map((code) => [code, 50n]),
  ),
};

/** Maximum amount in minor units: eight digits, by the reference of the API. */
const most = 99_999_999n;
/** Currencies with three decimals, of which the last must be 0. */
const inTens: readonly string[] = ['BHD', 'JOD', 'KWD', 'OMR', 'TND'];

/** Returns the bounds of Stripe that an amount breaks. */
export function checkAmount({ amount, currency }: Pick<PaymentOrder, 'amount' | 'currency'>): Violation[] {
  const min = least[currency] ?? 1n;
  if (amount < min || amount > most)
    return [
      {
        field: 'amount',
        rule: `must be from ${min} to ${most}, in minor units of ${currency}, at this payment provider`,
      },
    ];
  if (inTens.includes(currency) && amount % 10n !== 0n)
    return [
      {
        field: 'amount',
        rule: `must end in 0: this payment provider takes no single thousandths of ${currency}`,
      },
    ];
  return [];
}
