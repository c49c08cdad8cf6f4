import { linkIdBytes, linkIdPrefix } from './mint.ts';
import { sealText, unsealText } from './seal.ts';

/** The lifetime of a link, in seconds. */
export const linkLifeS = { min: 60, max: 7_776_000, default: 604_800 } as const;

/** The record of a link. Anyone with the token can read it. */
export interface Shared {
  readonly filingNo: string;
  /** The number of the record among those of the filing, from 1. */
  readonly sequence: number;
  /** As `mintLinkId` makes it. */
  readonly linkId: string;
}

/** Tokens of links. */
export type LinkTokens = ReturnType<typeof createLinkTokens>;

/** Unix seconds in eight bytes, the sequence in two, and the 14 characters of a filing number. */
const bytesBeforeId = 8 + 2 + 14;
const linkBytes = bytesBeforeId + linkIdBytes;

const context = 'evidence link';

/** Creates tokens that are encrypted with `key`, 32 bytes. */
export function createLinkTokens(key: Uint8Array) {
  return {
    /** Makes a token that expires at `endsAtS`, Unix seconds; base64url. */
    seal: ({ filingNo, sequence, linkId }: Shared, endsAtS: number): string => {
      const numbers = Buffer.alloc(10);
      numbers.writeBigUInt64BE(BigInt(endsAtS));
      numbers.writeUInt16BE(sequence, 8);
      const id = Buffer.from(linkId.slice(linkIdPrefix.length), 'hex');
      const plain = Buffer.concat([numbers, Buffer.from(filingNo), id]);
      return sealText(key, plain, context);
    },
    /** Opens a token at `nowS`, Unix seconds; undefined if it has expired or is not valid. */
    open: (token: string, nowS: number): Shared | undefined => {
      const plain = unsealText(key, token, linkBytes, context);
      if (plain === undefined || Number(plain.readBigUInt64BE()) <= nowS) return undefined;
      return {
        filingNo: plain.toString('utf8', 10, bytesBeforeId),
        sequence: plain.readUInt16BE(8),
        linkId: linkIdPrefix + plain.toString('hex', bytesBeforeId),
      };
    },
  };
}
