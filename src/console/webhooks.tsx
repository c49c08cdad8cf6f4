import { useState } from 'preact/hooks';
import { AdminService } from '../../gen/artseal/v1/admin_pb.ts';
import {
  type Delivery,
  Delivery_Status,
  type Webhook,
  Webhook_Status,
  WebhookService,
} from '../../gen/artseal/v1/webhook_pb.ts';
import { Actions, type Change } from './action.tsx';
import { link, word } from './format.ts';
import { useSession } from './session.ts';
import {
  Badge,
  type Column,
  Facts,
  Filter,
  PagedTable,
  Refresh,
  Section,
  Shown,
  Time,
  Title,
  useLoad,
  useRound,
} from './ui.tsx';

const columns: readonly Column<Webhook>[] = [
  ['Endpoint', ({ webhookId, url }) => <a href={link('webhooks', webhookId)}>{url}</a>],
  ['Status', ({ status }) => <Badge>{word(Webhook_Status, status)}</Badge>],
  ['Owner', ({ caller }) => caller],
  ['Events', ({ eventTypes }) => eventTypes.join(', ')],
  ['Failing since', ({ failingSince }) => <Time at={failingSince} />],
];

/** Webhook endpoints: all, those that fail, or those that are disabled. */
export function WebhooksView({ filter }: { filter: string }) {
  const { client, can } = useSession();
  return (
    <>
      <Title>Webhooks</Title>
      {can('OPERATE') && (
        <Filter
          label="Show"
          options={[
            ['', 'All endpoints'],
            ['failing', 'Failing'],
            ['disabled', 'Disabled'],
          ]}
          value={filter}
          change={(value) => {
            location.hash = link('webhooks', value);
          }}
        />
      )}
      <PagedTable
        caption="Webhook endpoints"
        again={filter}
        columns={columns}
        empty="There is no such endpoint."
        items="webhooks"
        read={(page) => {
          const status = Webhook_Status[filter === 'disabled' ? 'DISABLED' : 'STATUS_UNSPECIFIED'];
          if (!can('OPERATE')) return client(WebhookService).listWebhooks(page);
          return client(AdminService).listAllWebhooks({ ...page, status, failing: filter === 'failing' });
        }}
      />
    </>
  );
}

/** A webhook endpoint and its deliveries. */
export function WebhookView({ webhookId }: { webhookId: string }) {
  const webhooks = useSession().client(WebhookService);
  const loaded = useLoad(async () => webhooks.getWebhook({ webhookId }), webhookId);
  const found = loaded.data?.webhook;
  return (
    <>
      <Title actions={found && <WebhookActions of={found} done={loaded.reload} />}>
        {found?.url ?? webhookId}
      </Title>
      <Shown of={loaded}>
        {({ webhook }) =>
          webhook && (
            <>
              <Facts
                of={[
                  ['Status', <Badge>{word(Webhook_Status, webhook.status)}</Badge>],
                  ['Disabled because', webhook.disabledReason],
                  ['Id', <code>{webhookId}</code>],
                  ['Owner', webhook.caller],
                  ['Events', webhook.eventTypes.join(', ')],
                  ['Note', webhook.description],
                  ['Created', <Time at={webhook.createdAt} />],
                  ['Failing since', webhook.failingSince && <Time at={webhook.failingSince} />],
                ]}
              />
              <Deliveries webhookId={webhookId} />
            </>
          )
        }
      </Shown>
    </>
  );
}

function WebhookActions({ of: { webhookId, status, url }, done }: { of: Webhook; done: () => void }) {
  const admin = useSession().client(AdminService);
  const set = (to: Webhook_Status, change: Omit<Change, 'run'>): Change => ({
    ...change,
    run: ({ reason }, options) => admin.setWebhookStatus({ webhookId, status: to, reason }, options),
  });
  const disable = set(Webhook_Status.DISABLED, {
    label: 'Disable',
    title: 'Disable the endpoint?',
    text: 'It gets nothing more. Events that still wait for it fail.',
    isDanger: true,
  });
  const enable = set(Webhook_Status.ENABLED, {
    label: 'Enable',
    title: 'Enable the endpoint?',
    text: 'It gets new events. Redeliver those that it missed.',
  });
  const redeliver: Change = {
    label: 'Redeliver missed events',
    title: 'Redeliver missed events?',
    text: 'Sends all events since a time that did not arrive, in order.',
    fields: [
      {
        name: 'since',
        label: 'Since',
        type: 'datetime-local',
        help: 'At most 30 days ago, in your time zone.',
      },
    ],
    run: async ({ since = '', reason }, options) => {
      const from = new Date(since).toISOString();
      const { count } = await admin.redeliverEvents({ webhookId, since: from, reason }, options);
      return <p>{count === 1 ? '1 event is' : `${count} events are`} sent again.</p>;
    },
  };
  const remove: Change = {
    label: 'Delete',
    title: 'Delete the endpoint?',
    text: `${url}, its secret and its deliveries are deleted for ever.`,
    isDanger: true,
    run: async ({ reason }, options) => {
      await admin.removeWebhook({ webhookId, reason }, options);
      location.hash = link('webhooks');
    },
  };
  const isEnabled = status === Webhook_Status.ENABLED;
  return <Actions of={[isEnabled && redeliver, isEnabled ? disable : enable, remove]} done={done} />;
}

function Deliveries({ webhookId }: { webhookId: string }) {
  const { client } = useSession();
  const [status, setStatus] = useState('');
  const { round, again } = useRound();
  const redeliver = (sequence: bigint): Change => ({
    label: 'Redeliver',
    title: `Redeliver event ${sequence}?`,
    text: 'The endpoint gets the event again, even if it arrived before.',
    run: async ({ reason }, options) => {
      await client(AdminService).redeliverEvents({ webhookId, sequence, reason }, options);
    },
  });
  const columns: readonly Column<Delivery>[] = [
    ['Event', ({ sequence, type }) => `${sequence} ${type}`],
    ['Status', (delivery) => <Badge>{word(Delivery_Status, delivery.status)}</Badge>],
    ['Attempts', ({ attempts }) => attempts],
    ['Last attempt', ({ lastAttemptAt }) => <Time at={lastAttemptAt} />],
    ['Next attempt', ({ nextAttemptAt }) => <Time at={nextAttemptAt} />],
    ['Response', ({ httpStatus, error, answer }) => [httpStatus, error, answer].filter(Boolean).join(' · ')],
    ['Actions', ({ sequence }) => <Actions of={[redeliver(sequence)]} done={again} />],
  ];
  return (
    <Section title="Deliveries" actions={<Refresh of="Deliveries" again={again} />}>
      <Filter
        label="Status"
        options={[
          ['', 'All deliveries'],
          ...['PENDING', 'WAITING', 'DELIVERED', 'FAILED'].map((one) => [one, one] as const),
        ]}
        value={status}
        change={setStatus}
      />
      <PagedTable
        caption="Deliveries"
        again={`${status} ${round}`}
        columns={columns}
        empty="There is no such delivery in the last 30 days."
        items="deliveries"
        read={(page) => {
          const chosen = Delivery_Status[(status || 'STATUS_UNSPECIFIED') as keyof typeof Delivery_Status];
          return client(WebhookService).listDeliveries({ ...page, webhookId, status: chosen });
        }}
      />
    </Section>
  );
}
