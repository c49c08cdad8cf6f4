import type { Violation } from '../domain/violation.ts';
import type { Page, PageQuery } from '../store/store.ts';

/** How many items a page of any list has. */
export const pageSize = { default: 50, max: 100 } as const;

/** The paging fields that every list request has. */
interface ListRequest {
  readonly pageSize: number;
  readonly pageToken: string;
}

const prefix = 'after:';

/** The token of the page that begins behind `next`: opaque to callers, empty on the last page. */
export function pageToken({ next }: Page<unknown>): string {
  return next === undefined ? '' : Buffer.from(`${prefix}${next}`).toString('base64url');
}

function placeOf(token: string): number | undefined {
  const text = Buffer.from(token, 'base64url').toString('latin1');
  const place = text.startsWith(prefix) ? Number(text.slice(prefix.length)) : Number.NaN;
  return Number.isSafeInteger(place) && pageToken({ items: [], next: place }) === token ? place : undefined;
}

/** The paging fields that break their rules. */
export function checkPage(request: ListRequest): Violation[] {
  const violations: Violation[] = [];
  if (request.pageSize < 0 || request.pageSize > pageSize.max) {
    violations.push({
      field: 'pageSize',
      rule: `must be 1 to ${pageSize.max}, or 0 for ${pageSize.default}`,
    });
  }
  if (request.pageToken !== '' && placeOf(request.pageToken) === undefined) {
    violations.push({ field: 'pageToken', rule: 'must be the nextPageToken of an answer' });
  }
  return violations;
}

/** The page that a checked request asks for. */
export function pageQuery(request: ListRequest): PageQuery {
  return { from: placeOf(request.pageToken), size: request.pageSize || pageSize.default };
}
