import type { DescMessage, Message, MessageInitShape } from '@bufbuild/protobuf';
import type { GenMessage } from '@bufbuild/protobuf/codegenv2';
import type { Violation } from '../../domain/violation.ts';
import { sealText, unsealText } from '../../keys/seal.ts';
import type { CallerRef } from '../../store/filing-commands.ts';
import type { Page, PageQuery } from '../../store/paging.ts';
import type { Call, UnaryOperation } from '../operation.ts';

/** Items of a page, of any list. */
export const pageSize = { default: 50, max: 100 } as const;

/** A list request: its paging fields, and filters of its own. */
export interface ListRequest {
  readonly $typeName?: string;
  /** Missing if the size of a page is fixed. */
  readonly pageSize?: number;
  readonly pageToken: string;
}

const positionBytes = 8;

/** Checks paging fields and makes page tokens, for all lists. */
export type Paging = ReturnType<typeof createPaging>;

/** Creates a paging whose tokens are encrypted with `key`, 32 bytes. */
export function createPaging(key: Uint8Array) {
  /** Where the page of a token begins; undefined if the token is not valid for this list and caller. */
  function positionOf(request: ListRequest, by: CallerRef): number | undefined {
    const position = unsealText(key, request.pageToken, positionBytes, contextOf(request, by));
    return position && Number(position.readBigUInt64BE());
  }

  return {
    /** Checks the paging fields. */
    check: (request: ListRequest, by: CallerRef): Violation[] => {
      const violations: Violation[] = [];
      const { pageSize: size = 0 } = request;
      if (size < 0 || size > pageSize.max) {
        violations.push({
          field: 'pageSize',
          rule: `must be 1 to ${pageSize.max}, or 0 for ${pageSize.default}`,
        });
      }
      if (request.pageToken !== '' && positionOf(request, by) === undefined) {
        violations.push({
          field: 'pageToken',
          rule: 'must be a nextPageToken of the same list with the same filters',
        });
      }
      return violations;
    },
    /** Returns the page of a checked request. */
    query: (request: ListRequest, by: CallerRef): PageQuery => ({
      from: positionOf(request, by),
      size: request.pageSize || pageSize.default,
    }),
    /**
     * Returns the token of the next page, base64url; empty on the last page. It is encrypted, because positions in a list count
     * entries of other callers, and valid only for the same list, filters and caller.
     */
    token: ({ next }: Page<unknown>, request: ListRequest, by: CallerRef): string => {
      if (next === undefined) return '';
      const position = Buffer.alloc(positionBytes);
      position.writeBigUInt64BE(BigInt(next));
      return sealText(key, position, contextOf(request, by));
    },
  };
}

/** The parts in which the operations that list differ. */
interface Listing<Request, Found, Response> {
  /** Checks the filters. */
  check?(request: Request): readonly Violation[];
  find(request: Request, page: PageQuery, call: Call): Promise<Found>;
  /** Makes the response, without its token. */
  respond(found: Found, request: Request, call: Call): Response;
}

/** Makes an operation that lists items page by page. */
export function listing<
  Request extends Message & ListRequest,
  O extends DescMessage,
  Found extends Page<unknown>,
>(
  paging: Paging,
  { check = () => [], find, respond }: Listing<Request, Found, MessageInitShape<O>>,
): UnaryOperation<GenMessage<Request>, O> {
  return {
    check: (request, principal) => [...paging.check(request, principal), ...check(request)],
    run: async (request, call) => {
      const found = await find(request, paging.query(request, call.principal), call);
      const nextPageToken = paging.token(found, request, call.principal);
      return { ...respond(found, request, call), nextPageToken };
    },
  };
}

/** What a token is bound to. */
function contextOf(request: ListRequest, { callerId }: CallerRef): string {
  const { $typeName, pageSize: _, pageToken: _1, ...filters } = request;
  return JSON.stringify([$typeName, callerId, filters]);
}
