import { parseWitnessKey } from '../evidence/log/cosignature.ts';
import type { Witness } from '../evidence/log/witness.ts';
import { SettingError } from '../payments/provider.ts';
import { oneOf } from './settings.ts';

/** The most witnesses of a log: each is asked for each checkpoint, and adds a line to it. */
const witnessesMax = 16;

/**
 * Reads a file of witnesses: a line each, its verifier key and its submission prefix with a blank between them; empty lines and
 * lines that begin with # say nothing. Throws an Error that names the line.
 */
export function parseWitnesses(text: string): readonly Witness[] {
  const witnesses: Witness[] = [];
  for (const [place, line] of text.split('\n').entries()) {
    if (/^\s*(#|$)/.test(line)) continue;
    try {
      witnesses.push(parseWitness(line.trim()));
    } catch (error) {
      throw new Error(`line ${place + 1} ${(error as Error).message}`);
    }
  }
  if (witnesses.length === 0) throw new Error('it names no witness');
  if (witnesses.length > witnessesMax) throw new Error(`it names more than ${witnessesMax} witnesses`);
  const names = witnesses.map(({ key }) => key.name);
  const twice = names.find((name, place) => names.indexOf(name) !== place);
  if (twice !== undefined) throw new Error(`it names ${twice} twice`);
  return witnesses;
}

function parseWitness(line: string): Witness {
  const [vkey = '', url = '', ...more] = line.split(/\s+/);
  if (url === '' || more.length > 0) throw new Error('is not a verifier key, a blank and a URL');
  return { key: parseWitnessKey(vkey), url: parseHttpUrl(url).replace(/\/$/, '') };
}

/** Reads how many witnesses are required. Throws SettingError. */
export function parseRequiredWitnesses(text: string): number {
  const required = /^\d{1,2}$/.test(text) ? Number(text) : Number.NaN;
  if (required <= witnessesMax) return required;
  throw new SettingError(`must be a whole number from 0 to ${witnessesMax}`);
}

/** Reads whether something is done. Throws SettingError. */
export const parseYesOrNo = oneOf([true, false], (is) => (is ? 'yes' : 'no'));

/**
 * Reads the address of somebody who signs what he answers: so that plain http will do, which most authorities for time stamps
 * speak. Throws SettingError.
 */
export function parseHttpUrl(text: string): string {
  const url = URL.parse(text);
  const isGood =
    (url?.protocol === 'https:' || url?.protocol === 'http:') && url.username === '' && url.password === '';
  if (isGood && url.search === '' && url.hash === '') return url.href;
  throw new SettingError('must be an address, https:// or http://, without a password, ? and #');
}
