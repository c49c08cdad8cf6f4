/** The institution's own names for a party, by what they name: `{ customer: 'cus_…', paymentMethod: 'pm_…' }`. */
export type PartyNames = Readonly<Record<string, string>>;
