import { useState } from 'preact/hooks';
import { AdminService, type RequestEntry, RequestEntry_Api } from '../../gen/artseal/v1/admin_pb.ts';
import { count, link, word } from './format.ts';
import { useSession } from './session.ts';
import { type Column, Filter, PagedTable, Refresh, Time, Title, useRound } from './ui.tsx';

const columns: readonly Column<RequestEntry>[] = [
  ['Ended', ({ at }) => <Time at={at} />],
  [
    'Result',
    ({ httpStatus, reason }) => (
      <>
        {httpStatus || 'no response'} <code class="id">{reason || 'OK'}</code>
      </>
    ),
  ],
  ['Duration', ({ durationMs }) => `${count(durationMs)} ms`],
  ['Caller', (request) => <Caller of={request} />],
  ['API', ({ api }) => <span class="id">{word(RequestEntry_Api, api)}</span>],
  ['Operation', ({ operation }) => operation.replace(/^artseal\.v1\./, '')],
  ['Request', ({ requestId }) => <a href={link('requests', requestId)}>{requestId}</a>],
];

function Caller({ of: { caller, api, authenticated } }: { of: RequestEntry }) {
  if (api === RequestEntry_Api.ADMIN || caller === '') return <>{caller}</>;
  return (
    <>
      <a href={link('requests', 'of', caller)}>{caller}</a>
      {!authenticated && <span class="quiet"> (not verified)</span>}
    </>
  );
}

/** The last calls: all, those of a platform or internal system, or the one with a request id. */
export function RequestsView({
  requestId = '',
  platform = '',
}: {
  requestId?: string | undefined;
  platform?: string | undefined;
}) {
  const admin = useSession().client(AdminService);
  const [shown, setShown] = useState('');
  const [api, setApi] = useState('');
  const { round, again } = useRound();
  return (
    <>
      <Title actions={<Refresh of="Requests" again={again} />}>
        {platform === '' ? 'Requests' : `Requests of ${platform}`}
      </Title>
      {requestId + platform !== '' && <a href={link('requests')}>All requests</a>}
      {requestId === '' && (
        <div class="filters">
          <Filter
            label="Show"
            options={[
              ['', 'All calls'],
              ['failed', 'Only failed'],
            ]}
            value={shown}
            change={setShown}
          />
          <Filter
            label="API"
            options={['', 'PUBLIC', 'INTERNAL', 'ADMIN'].map((one) => [one, one || 'All'])}
            value={api}
            change={setApi}
          />
        </div>
      )}
      <PagedTable
        caption="Requests"
        again={`${shown} ${api} ${round}`}
        columns={columns}
        empty="The server has no such call. It keeps at most 10,000 in memory; a restart forgets them."
        items="requests"
        read={(page) =>
          admin.listRequests({
            ...page,
            ...{ requestId, platform, failed: shown === 'failed' },
            api: RequestEntry_Api[(api || 'API_UNSPECIFIED') as keyof typeof RequestEntry_Api],
          })
        }
      />
    </>
  );
}
