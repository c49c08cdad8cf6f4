import { deflateRawSync } from 'node:zlib';

/**
 * The link of a QR code: the page `/verify` with the bundle and the verifier key in the fragment, which browsers do not send.
 */

/** The characters of a link, at most. A QR code with more is too fine for the camera of a phone. */
const linkLengthMax = 2_300;

/** The members of a bundle that the link needs. */
export interface LinkedBundle {
  readonly disclosed?: Readonly<Record<string, { readonly value: string }>> | undefined;
  readonly hash?: string | undefined;
  readonly timeStamp?: unknown;
}

/** A link, and the members that only the attached bundle discloses. */
export interface BundleLink {
  readonly link: string;
  readonly omitted: readonly string[];
}

/**
 * Makes the link to the page at `url`. It leaves out the time stamp, and the longest disclosed members if it would be too long. A
 * bundle that does not fit at all is left out as well: the reader chooses the file.
 */
export function linkTo(url: string, bundle: LinkedBundle, vkey: string): BundleLink {
  const { timeStamp: _, ...short } = bundle;
  const { disclosed, hash, ...rest } = short;
  const whole = linkWith(url, short, vkey);
  if (whole.length <= linkLengthMax) return { link: whole, omitted: [] };
  const members = Object.entries(disclosed ?? {});
  const longestFirst = members.toSorted(([, one], [, other]) => other.value.length - one.value.length);
  const omitted: string[] = [];
  for (const [name] of longestFirst) {
    omitted.push(name);
    const kept = Object.fromEntries(members.filter(([member]) => !omitted.includes(member)));
    // The evidence hash does not cover attachments.
    const hides = omitted.some((member) => member !== 'attachments');
    const link = linkWith(url, { ...rest, ...(!hides && { hash }), disclosed: kept }, vkey);
    if (link.length <= linkLengthMax) return { link, omitted };
  }
  return { link: url, omitted: [] };
}

function linkWith(url: string, bundle: object, vkey: string): string {
  const packed = deflateRawSync(JSON.stringify(bundle), { level: 9 }).toString('base64url');
  return `${url}#bundle=${packed}&key=${encodeURIComponent(vkey)}`;
}
