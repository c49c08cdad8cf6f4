import { linkIdBytes, linkIdPrefix } from './mint.ts';
import { seal, sealOverheadBytes, unseal } from './seal.ts';

/** How long a link may be good for, in seconds. */
export const linkLifeS = { min: 60, max: 7_776_000, default: 604_800 } as const;

/** What a link gives evidence of, to whoever has its token. */
export interface Shared {
  readonly filingNo: string;
  /** The place of the record among those of the filing, from 1. */
  readonly sequence: number;
  /** As `mintLinkId` makes it; undefined for a link that was made before links had ids, and cannot be revoked. */
  readonly linkId: string | undefined;
}

/** Tokens of links. */
export interface LinkTokens {
  /** A token that is good until then, Unix seconds; base64url. */
  seal(shared: Shared & { readonly linkId: string }, endsAtS: number): string;
  /** What a token is good for at `nowS`, Unix seconds; undefined if it has expired, or was not made here. */
  open(token: string, nowS: number): Shared | undefined;
}

/** Unix seconds in eight bytes, the sequence in two, and the 14 characters of a filing number. */
const bytesBeforeIds = 8 + 2 + 14;
/** The same, and the bytes of the id of the link. */
const linkBytes = bytesBeforeIds + linkIdBytes;

const context = 'evidence link';

/** Tokens sealed under a key of 32 bytes; another key opens none of them. */
export function createLinkTokens(key: Uint8Array): LinkTokens {
  return {
    seal: ({ filingNo, sequence, linkId }, endsAtS) => {
      const numbers = Buffer.alloc(10);
      numbers.writeBigUInt64BE(BigInt(endsAtS));
      numbers.writeUInt16BE(sequence, 8);
      const id = Buffer.from(linkId.slice(linkIdPrefix.length), 'hex');
      const plain = Buffer.concat([numbers, Buffer.from(filingNo), id]);
      return seal(key, plain, context).toString('base64url');
    },
    open: (token, nowS) => {
      const sealed = Buffer.from(token, 'base64url');
      // Decoding passes over what is not base64url, and what is as long as a token is cheap to open.
      const bytes = sealed.length - sealOverheadBytes;
      const isToken = bytes === linkBytes || bytes === bytesBeforeIds;
      if (!isToken || sealed.toString('base64url') !== token) return undefined;
      const plain = unsealed(key, sealed);
      if (plain === undefined || Number(plain.readBigUInt64BE()) <= nowS) return undefined;
      const linkId = bytes === linkBytes ? linkIdPrefix + plain.toString('hex', bytesBeforeIds) : undefined;
      return {
        filingNo: plain.toString('utf8', 10, bytesBeforeIds),
        sequence: plain.readUInt16BE(8),
        linkId,
      };
    },
  };
}

function unsealed(key: Uint8Array, sealed: Buffer): Buffer | undefined {
  try {
    return unseal(key, sealed, context);
  } catch {
    return undefined;
  }
}
