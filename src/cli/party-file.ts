import type { PartyRole } from '../domain/escrow-terms.ts';
import { checkParty, type PartyRules, type ProviderIds } from '../domain/party.ts';
import type { Violation } from '../domain/violation.ts';
import { JsonError, type JsonValue, parseJsonObject, shownName } from '../lib/json/strict-json.ts';
import type { ImportedParty, NamedCaller } from '../store/party-commands.ts';

/** The parties of a file, and all that is wrong with it. */
export interface PartyFile {
  readonly parties: readonly ImportedParty[];
  readonly callers: readonly NamedCaller[];
  readonly violations: readonly Violation[];
}

/**
 * Parties, and platforms, that a file may have. An import is one transaction, and a server rejects writes that wait for more
 * than 250 ms; replacing so many takes some 100 ms.
 */
export const partiesPerFileMax = 2_000;

/** The largest file, in bytes: room for so many parties with the longest ids. */
export const partyFileBytesMax = 8_388_608;

/** A part of a file, or what is wrong with it. */
type Item =
  | { readonly party: ImportedParty }
  | { readonly caller: NamedCaller }
  | { readonly violation: Violation };

const sections = { buyers: 'BUYER', sellers: 'SELLER' } as const satisfies Record<string, PartyRole>;

/**
 * Reads a file of parties: of several platforms, or of the given one. If a party has a single provider id, a string may
 * replace the object. A file that is no JSON object, or repeats a member, has that one fault.
 *
 *     {"platforms": {"gallery": {"buyers": {"b1": {"customer": "cus_…", …}}, "sellers": {"s1": {"account": "acct_…"}}}}}
 *     {"buyers": {"b1": {"customer": "cus_…", …}}, "sellers": {"s1": "acct_…"}}
 */
export function readPartyFile(bytes: Uint8Array, platform: string | undefined, rules: PartyRules): PartyFile {
  const items = [...itemsOf(bytes, platform, rules)];
  const parties = items.flatMap((item) => ('party' in item ? [item.party] : []));
  const callers = items.flatMap((item) => ('caller' in item ? [item.caller] : []));
  const violations = items.flatMap((item) => ('violation' in item ? [item.violation] : []));
  for (const [what, { length }] of Object.entries({ parties, platforms: callers })) {
    if (length <= partiesPerFileMax) continue;
    const rule = `must have at most ${partiesPerFileMax} ${what}, not ${length}: split it`;
    return { parties: [], callers: [], violations: [{ field: 'the file', rule }] };
  }
  return { parties, callers, violations };
}

function* itemsOf(bytes: Uint8Array, platform: string | undefined, rules: PartyRules): Generator<Item> {
  let value: JsonValue;
  try {
    value = parseJsonObject(bytes);
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    return yield broken(lineOf(bytes, error.at), `is invalid: ${error.what}`);
  }
  if (platform === undefined) return yield* partiesOfPlatforms(value, rules);
  yield* partiesOf({ value, place: '', caller: platform, field: '--platform' }, rules);
}

/** The parties under `platforms`. */
function* partiesOfPlatforms(file: JsonValue, rules: PartyRules): Generator<Item> {
  if (!(file instanceof Map && file.has('platforms')))
    yield broken('platforms', 'is required without --platform');
  for (const [, platforms] of yield* members(file, '', ['platforms']))
    for (const [caller, value] of yield* members(platforms, 'platforms')) {
      const place = placeIn('platforms', caller);
      yield* partiesOf({ value, place, caller, field: place }, rules);
    }
}

/** The part of a file for one platform. */
interface OfPlatform extends NamedCaller {
  readonly value: JsonValue;
  /** Its place in the file; '' for the whole file. */
  readonly place: string;
}

function* partiesOf({ value, place, caller, field }: OfPlatform, rules: PartyRules): Generator<Item> {
  yield { caller: { caller, field } };
  for (const [section, parties] of yield* members(value, place, Object.keys(sections))) {
    const where = place === '' ? section : `${place}.${section}`;
    const role = sections[section as keyof typeof sections];
    for (const [partyId, named] of yield* members(parties, where)) {
      const party = { role, partyId, providerIds: providerIdsIn(named, Object.keys(rules[role])) };
      for (const violation of checkParty(party, rules))
        yield broken(fieldIn(placeIn(where, partyId), violation.field), violation.rule);
      yield { party: { ...party, caller } };
    }
  }
}

/** The members of an object. If names are given, others are faults. */
function* members(
  value: JsonValue,
  place: string,
  names?: readonly string[],
): Generator<Item, readonly (readonly [string, JsonValue])[]> {
  if (!(value instanceof Map)) {
    yield broken(place, 'must be an object');
    return [];
  }
  const known = [...value].filter(([name]) => names?.includes(name) ?? true);
  for (const name of value.keys())
    if (names?.includes(name) === false)
      yield broken(placeIn(place, name), `is unknown here, where there are only ${names.join(' and ')}`);
  return known;
}

/** The provider ids of a party. Values that are not strings become '', which fails every rule. */
function providerIdsIn(value: JsonValue, members: readonly string[]): ProviderIds {
  const text = (name: JsonValue) => (typeof name === 'string' ? name : '');
  if (value instanceof Map)
    return Object.fromEntries([...value].map(([member, name]) => [member, text(name)]));
  const [only, ...others] = members;
  return only !== undefined && others.length === 0 ? { [only]: text(value) } : {};
}

const broken = (field: string, rule: string): Item => ({ violation: { field, rule } });

/** A member of the file in messages: `platforms["gallery"]`. */
const placeIn = (place: string, name: string): string => `${place}[${JSON.stringify(shownName(name))}]`;

/** A field of a party in messages. */
function fieldIn(place: string, field: string): string {
  if (field === 'partyId') return `the id of ${place}`;
  return field === 'providerIds' ? place : `${place}${field.slice('providerIds'.length)}`;
}

/** A position of the file in messages; `at` is in UTF-16 units. */
function lineOf(bytes: Uint8Array, at: number | undefined): string {
  if (at === undefined) return 'the file';
  const before = new TextDecoder().decode(bytes).slice(0, at).split('\n');
  return `line ${before.length}, column ${(before.at(-1) ?? '').length + 1}`;
}
