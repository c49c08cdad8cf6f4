import { seal, sealOverheadBytes, unseal } from './seal.ts';

/** How long a link may be good for, in seconds. */
export const linkLifeS = { min: 60, max: 7_776_000, default: 604_800 } as const;

/** What a link gives evidence of, to whoever has its token. */
export interface Shared {
  readonly filingNo: string;
  /** The place of the record among those of the filing, from 1. */
  readonly sequence: number;
}

/** Tokens of links. */
export interface LinkTokens {
  /** A token that is good until then, Unix seconds; base64url. */
  seal(shared: Shared, endsAtS: number): string;
  /** What a token is good for at `nowS`, Unix seconds; undefined if it has expired, or was not made here. */
  open(token: string, nowS: number): Shared | undefined;
}

/** Unix seconds in eight bytes, the sequence in two, and the 14 characters of a filing number. */
const tokenBytes = sealOverheadBytes + 8 + 2 + 14;

const context = 'evidence link';

/** Tokens sealed under a key of 32 bytes; another key opens none of them. */
export function createLinkTokens(key: Uint8Array): LinkTokens {
  return {
    seal: ({ filingNo, sequence }, endsAtS) => {
      const numbers = Buffer.alloc(10);
      numbers.writeBigUInt64BE(BigInt(endsAtS));
      numbers.writeUInt16BE(sequence, 8);
      return seal(key, Buffer.concat([numbers, Buffer.from(filingNo)]), context).toString('base64url');
    },
    open: (token, nowS) => {
      const sealed = Buffer.from(token, 'base64url');
      // Decoding passes over what is not base64url, and what is as long as a token is cheap to open.
      if (sealed.length !== tokenBytes || sealed.toString('base64url') !== token) return undefined;
      const plain = unsealed(key, sealed);
      if (plain === undefined || Number(plain.readBigUInt64BE()) <= nowS) return undefined;
      return { filingNo: plain.toString('utf8', 10), sequence: plain.readUInt16BE(8) };
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
