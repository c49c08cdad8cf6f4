import type { AdminService } from '../../../gen/artseal/v1/admin_pb.ts';
import { checkReasoned } from '../../domain/audit-entry.ts';
import { actorOf, type Operations } from '../operation.ts';
import type { ServiceDependencies } from './dependencies.ts';
import { linkMessage } from './evidence-service.ts';
import { listing } from './paging.ts';

/** The operations of AdminService on links to evidence. */
export function createLinkOperations({
  clock,
  timestamp,
  paging,
}: ServiceDependencies): Pick<Operations<typeof AdminService>, 'listAllLinks' | 'revokeLink'> {
  return {
    listAllLinks: listing(paging, {
      find: ({ filingNo }, page, { execute }) => {
        const nowS = Math.floor(clock.nowMs() / 1_000);
        return execute({ kind: 'ListLinks', filingNo, owner: undefined, nowS, page });
      },
      respond: ({ items }) => ({ links: items.map((link) => linkMessage(link, timestamp)) }),
    }),
    revokeLink: {
      check: checkReasoned,
      run: async ({ linkId, reason }, call) => {
        const named = { linkId, filingNo: undefined, owner: undefined };
        const by = actorOf(call, clock, reason);
        const link = await call.execute({ kind: 'RevokeLink', by, ...named });
        return { link: linkMessage(link, timestamp), filingNo: link.filingNo };
      },
    },
  };
}
