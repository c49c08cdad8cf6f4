/** What the address of the page has after `#`: see src/evidence/certificate/link.ts. */
interface Linked {
  readonly bytes: Uint8Array;
  readonly key: string;
}

/**
 * Reads the bundle and the key in the fragment of an address; undefined if it has none. Throws an Error if they cannot be read, or the
 * bundle is longer than `bytesMax`.
 */
export async function bundleInLink(fragment: string, bytesMax: number): Promise<Linked | undefined> {
  const parameters = new URLSearchParams(fragment.slice(1));
  const [packed, key] = [parameters.get('bundle'), parameters.get('key')];
  if (packed === null || key === null) return undefined;
  const text = atob(packed.replaceAll('-', '+').replaceAll('_', '/'));
  const deflated = new Blob([Uint8Array.from(text, (character) => character.charCodeAt(0))]);
  const reader = deflated.stream().pipeThrough(new DecompressionStream('deflate-raw')).getReader();
  const parts: Uint8Array<ArrayBuffer>[] = [];
  let length = 0;
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    length += part.value.length;
    if (length > bytesMax) throw new Error('the bundle is too long');
    parts.push(part.value as Uint8Array<ArrayBuffer>);
  }
  return { bytes: new Uint8Array(await new Blob(parts).arrayBuffer()), key };
}
