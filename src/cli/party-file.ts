import type { PartyRole } from '../domain/escrow-terms.ts';
import { checkParty, type PartyNames, type PartyRules } from '../domain/party.ts';
import type { Violation } from '../domain/violation.ts';
import { JsonError, type JsonValue, parseJsonObject, shownName } from '../lib/json/strict-json.ts';
import type { ImportedParty, NamedCaller } from '../store/party-commands.ts';

/** What a file of parties says, and all that is wrong with it, by its places. */
export interface PartyFile {
  readonly parties: readonly ImportedParty[];
  readonly callers: readonly NamedCaller[];
  readonly violations: readonly Violation[];
}

/**
 * How many parties a file may have, and how many platforms: it is one transaction, and a serving process refuses what it has to
 * write once it waited for 250 ms. So many that are all replaced take some 100 ms.
 */
export const partiesPerFileMax = 2_000;

/** The largest file, in bytes: room for so many parties with the longest of ids and names. */
export const partyFileBytesMax = 8_388_608;

/** What a file has, and what is wrong with it. */
type Item =
  | { readonly party: ImportedParty }
  | { readonly caller: NamedCaller }
  | { readonly violation: Violation };

const sections = { buyers: 'BUYER', sellers: 'SELLER' } as const satisfies Record<string, PartyRole>;

/**
 * Reads a file of parties: those of several platforms, or, where one is named, of that one. Where a party has a single
 * name, this may stand for the object of its names. A file that is not one JSON object, or repeats a member, is wrong in
 * that alone.
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
    return yield broken(lineOf(bytes, error.at), `is refused: ${error.what}`);
  }
  if (platform === undefined) return yield* partiesOfPlatforms(value, rules);
  yield* partiesOf({ value, place: '', caller: platform, field: '--platform' }, rules);
}

/** The parties under `platforms`. */
function* partiesOfPlatforms(file: JsonValue, rules: PartyRules): Generator<Item> {
  if (!(file instanceof Map && file.has('platforms')))
    yield broken('platforms', 'is required, unless --platform says whose parties they are');
  for (const [, platforms] of yield* members(file, '', ['platforms']))
    for (const [caller, value] of yield* members(platforms, 'platforms')) {
      const place = placeIn('platforms', caller);
      yield* partiesOf({ value, place, caller, field: place }, rules);
    }
}

/** What a file says of one platform, and where. */
interface OfPlatform extends NamedCaller {
  readonly value: JsonValue;
  /** '' if it is the whole file. */
  readonly place: string;
}

function* partiesOf({ value, place, caller, field }: OfPlatform, rules: PartyRules): Generator<Item> {
  yield { caller: { caller, field } };
  for (const [section, parties] of yield* members(value, place, Object.keys(sections))) {
    const where = place === '' ? section : `${place}.${section}`;
    const role = sections[section as keyof typeof sections];
    for (const [partyId, named] of yield* members(parties, where)) {
      const party = { role, partyId, names: namesIn(named, Object.keys(rules[role])) };
      for (const violation of checkParty(party, rules))
        yield broken(fieldIn(placeIn(where, partyId), violation.field), violation.rule);
      yield { party: { ...party, caller } };
    }
  }
}

/** The members of an object, of those names alone if any are given; what else there is, is wrong. */
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

/** The names of a party; what is no text is a name that no rule lets pass. */
function namesIn(value: JsonValue, members: readonly string[]): PartyNames {
  const text = (name: JsonValue) => (typeof name === 'string' ? name : '');
  if (value instanceof Map)
    return Object.fromEntries([...value].map(([member, name]) => [member, text(name)]));
  const [only, ...others] = members;
  return only !== undefined && others.length === 0 ? { [only]: text(value) } : {};
}

const broken = (field: string, rule: string): Item => ({ violation: { field, rule } });

/** A member of the file, as messages name it: `platforms["gallery"]`. */
const placeIn = (place: string, name: string): string => `${place}[${JSON.stringify(shownName(name))}]`;

/** A field of a party by its place in the file. */
function fieldIn(place: string, field: string): string {
  if (field === 'partyId') return `the id of ${place}`;
  return field === 'names' ? place : `${place}${field.slice('names'.length)}`;
}

/** Where a place of a file is, in UTF-16 units from its beginning, as messages name it. */
function lineOf(bytes: Uint8Array, at: number | undefined): string {
  if (at === undefined) return 'the file';
  const before = new TextDecoder().decode(bytes).slice(0, at).split('\n');
  return `line ${before.length}, column ${(before.at(-1) ?? '').length + 1}`;
}
