import type { Violation } from '../../domain/violation.ts';
import { seal, sealOverheadBytes, unseal } from '../../keys/seal.ts';
import type { CallerRef } from '../../store/filing-commands.ts';
import type { Page, PageQuery } from '../../store/paging.ts';

/** How many items a page of any list has. */
export const pageSize = { default: 50, max: 100 } as const;

/** A list request: its paging fields, and filters of its own. */
export interface ListRequest {
  readonly $typeName?: string;
  readonly pageSize: number;
  readonly pageToken: string;
}

/** The pages of all lists. */
export interface Paging {
  /** The paging fields that break their rules. */
  check(request: ListRequest, by: CallerRef): Violation[];
  /** The page that a checked request asks for. */
  query(request: ListRequest, by: CallerRef): PageQuery;
  /**
   * The token of the page behind this one, base64url; empty on the last. It is sealed, since places in a list count
   * what others have too, and leads on in the same list with the same filters for the same caller alone.
   */
  token(page: Page<unknown>, request: ListRequest, by: CallerRef): string;
}

const placeBytes = 8;

/** Paging whose tokens are sealed under `key`, 32 bytes; another key takes none of them. */
export function createPaging(key: Uint8Array): Paging {
  /** Where the page of a token begins; undefined if the token was not given for this list to this caller. */
  function placeOf(request: ListRequest, by: CallerRef): number | undefined {
    const sealed = Buffer.from(request.pageToken, 'base64url');
    // Decoding passes over what is not base64url, and what is as long as a token is cheap to open.
    const isToken = sealed.length === sealOverheadBytes + placeBytes;
    if (!isToken || sealed.toString('base64url') !== request.pageToken) return undefined;
    try {
      return Number(unseal(key, sealed, contextOf(request, by)).readBigUInt64BE());
    } catch {
      return undefined;
    }
  }

  return {
    check: (request, by) => {
      const violations: Violation[] = [];
      if (request.pageSize < 0 || request.pageSize > pageSize.max) {
        violations.push({
          field: 'pageSize',
          rule: `must be 1 to ${pageSize.max}, or 0 for ${pageSize.default}`,
        });
      }
      if (request.pageToken !== '' && placeOf(request, by) === undefined) {
        violations.push({
          field: 'pageToken',
          rule: 'must be the nextPageToken that you were given for the same list with the same filters',
        });
      }
      return violations;
    },
    query: (request, by) => ({ from: placeOf(request, by), size: request.pageSize || pageSize.default }),
    token: ({ next }, request, by) => {
      if (next === undefined) return '';
      const place = Buffer.alloc(placeBytes);
      place.writeBigUInt64BE(BigInt(next));
      return seal(key, place, contextOf(request, by)).toString('base64url');
    },
  };
}

/** What a token is good for. */
function contextOf(request: ListRequest, { callerId }: CallerRef): string {
  const { $typeName, pageSize: _, pageToken: _1, ...filters } = request;
  return JSON.stringify([$typeName, callerId, filters]);
}
