import { hash } from 'node:crypto';
import type { Violation } from '../domain/violation.ts';
import type { Page, PageQuery } from '../store/store.ts';

/** How many items a page of any list has. */
export const pageSize = { default: 50, max: 100 } as const;

/** A list request: its paging fields, and filters of its own. */
interface ListRequest {
  readonly $typeName?: string;
  readonly pageSize: number;
  readonly pageToken: string;
}

const tokenPattern = /^after:([0-9]+):/;
const digestLength = 16;

/** Which list with which filters a token is for, so that none leads to a wrong place in another. */
function digestOf({ $typeName, pageSize: _, pageToken: _1, ...filters }: ListRequest): string {
  return hash('sha256', `${$typeName} ${JSON.stringify(filters)}`).slice(0, digestLength);
}

/** The token of the page that begins behind `next`: opaque to callers, empty on the last page. */
export function pageToken({ next }: Page<unknown>, request: ListRequest): string {
  return next === undefined ? '' : Buffer.from(`after:${next}:${digestOf(request)}`).toString('base64url');
}

function placeOf(request: ListRequest): number | undefined {
  const text = Buffer.from(request.pageToken, 'base64url').toString('latin1');
  const next = Number(tokenPattern.exec(text)?.[1] ?? Number.NaN);
  const isPlace = Number.isSafeInteger(next) && pageToken({ items: [], next }, request) === request.pageToken;
  return isPlace ? next : undefined;
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
  if (request.pageToken !== '' && placeOf(request) === undefined) {
    violations.push({
      field: 'pageToken',
      rule: 'must be the nextPageToken of an answer to the same list with the same filters',
    });
  }
  return violations;
}

/** The page that a checked request asks for. */
export function pageQuery(request: ListRequest): PageQuery {
  return { from: placeOf(request), size: request.pageSize || pageSize.default };
}
