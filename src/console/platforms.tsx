import { useRef, useState } from 'preact/hooks';
import {
  AdminService,
  type Key,
  Key_Status,
  Key_Tier,
  type ListUsageResponse_Usage,
  type Platform,
  Platform_Status,
} from '../../gen/artseal/v1/admin_pb.ts';
import { Actions, type Change, type Field, type Values } from './action.tsx';
import { count, link, word } from './format.ts';
import { useSession } from './session.ts';
import {
  Badge,
  type Column,
  Facts,
  Filter,
  PagedTable,
  Ref,
  Secret,
  Section,
  Shown,
  Table,
  Time,
  Title,
  useLoad,
} from './ui.tsx';

/** The fields of the limits of a platform. */
export const limitFields = (platform?: Pick<Platform, 'tier'> & Partial<Platform>): readonly Field[] => [
  {
    name: 'tier',
    label: 'Tier',
    options: [
      ['TRIAL', 'Trial: 10 calls a second, 1,000 a month'],
      ['STANDARD', 'Standard: 50 calls a second, 10,000 a month'],
      ['ENTERPRISE', 'Enterprise: 200 calls a second, an agreed quota'],
    ],
    value: platform === undefined ? 'TRIAL' : word(Key_Tier, platform.tier),
  },
  {
    name: 'quota',
    label: 'Calls a month',
    type: 'number',
    isOptional: true,
    help: 'Only for Enterprise. Empty means unlimited.',
    value: platform?.tier === Key_Tier.ENTERPRISE ? String(platform.monthlyQuota ?? '') : '',
  },
  {
    name: 'cap',
    label: 'Filings a year, at most',
    type: 'number',
    isOptional: true,
    help: 'Empty means no cap.',
    value: String(platform?.filingCap ?? ''),
  },
];

/** The limits of a request, as the operator entered them. */
export function limitsOf({ tier = '', quota = '', cap = '' }: Values) {
  return {
    tier: Key_Tier[tier as keyof typeof Key_Tier],
    ...(quota !== '' && { monthlyQuota: BigInt(quota) }),
    unlimited: tier === 'ENTERPRISE' && quota === '',
    ...(cap !== '' && { filingCap: BigInt(cap) }),
  };
}

/** A key that was just issued, with its secret. */
function IssuedKey({ apiKey, apiSecret }: { apiKey: string; apiSecret: string }) {
  return (
    <>
      <p>
        <strong>Copy the secret now.</strong> It is not shown again.
      </p>
      <Secret label="API key" text={apiKey} />
      <Secret label="API secret" text={apiSecret} />
    </>
  );
}

const quotaText = (quota: bigint | undefined) => (quota === undefined ? 'unlimited' : count(quota));

/** The twelve months before this one, as YYYY-MM. */
const lastMonths = (): readonly string[] => {
  const now = new Date();
  return Array.from({ length: 12 }, (_, place) =>
    new Date(Date.UTC(now.getFullYear(), now.getMonth() - 1 - place)).toISOString().slice(0, 7),
  );
};

/** All platforms, with their calls in a month. */
export function PlatformsView() {
  const admin = useSession().client(AdminService);
  const [month, setMonth] = useState('');
  const columns: readonly Column<ListUsageResponse_Usage>[] = [
    ['Name', ({ platform }) => <Ref to="platforms" id={platform?.caller ?? ''} />],
    ['Status', ({ platform }) => <Badge>{word(Platform_Status, platform?.status)}</Badge>],
    ['Tier', ({ platform }) => word(Key_Tier, platform?.tier)],
    ['Calls in the month', ({ calls }) => count(calls)],
    ['Calls left', ({ remaining }) => quotaText(remaining)],
    [
      'Filing cap',
      ({ platform }) => (platform?.filingCap === undefined ? 'none' : count(platform.filingCap)),
    ],
  ];
  return (
    <>
      <Title actions={<CreatePlatform />}>Platforms</Title>
      <Filter
        label="Month"
        options={[['', 'This month'], ...lastMonths().map((one) => [one, one] as const)]}
        value={month}
        change={setMonth}
      />
      <PagedTable
        caption="Platforms"
        columns={columns}
        empty="No platform is registered yet. Create one to issue its first key."
        items="usages"
        again={month}
        read={(page) => admin.listUsage({ ...page, month })}
      />
    </>
  );
}

function CreatePlatform() {
  const admin = useSession().client(AdminService);
  const created = useRef('');
  const change: Change = {
    label: 'Create platform',
    title: 'Create a platform',
    text: 'The platform gets its first API key and its secret.',
    fields: [{ name: 'name', label: 'Name', maxLength: 128 }, ...limitFields()],
    run: async (values, options) => {
      const { name = '', reason } = values;
      const { key, apiSecret } = await admin.createKey({ name, ...limitsOf(values), reason }, options);
      created.current = name;
      return <IssuedKey apiKey={key?.apiKey ?? ''} apiSecret={apiSecret} />;
    },
  };
  const open = () => {
    location.hash = link('platforms', created.current);
  };
  return <Actions of={[change]} done={open} />;
}

/** A platform: its limits, usage and keys. */
export function PlatformView({ name }: { name: string }) {
  const admin = useSession().client(AdminService);
  const loaded = useLoad(async () => {
    const [{ platform }, usage] = await Promise.all([
      admin.getPlatform({ caller: name }),
      admin.getUsage({ caller: name }),
    ]);
    return { platform, usage };
  }, name);
  return (
    <>
      <Title
        actions={
          loaded.data?.platform && <PlatformActions platform={loaded.data.platform} done={loaded.reload} />
        }
      >
        {name}
      </Title>
      <Shown of={loaded}>
        {({ platform, usage }) => (
          <>
            <Facts
              of={[
                ['Status', platform && <Badge>{word(Platform_Status, platform.status)}</Badge>],
                ['Tier', word(Key_Tier, platform?.tier)],
                ['Calls a month', quotaText(platform?.monthlyQuota)],
                [`Calls in ${usage.month}`, count(usage.calls)],
                ['Calls left', quotaText(usage.remaining)],
                ['Filing cap', platform?.filingCap === undefined ? 'none' : count(platform.filingCap)],
                ['Filings this year', count(usage.filingsInYear)],
                ['Requests', <a href={link('requests', 'of', name)}>last calls</a>],
              ]}
            />
            <Keys caller={name} />
          </>
        )}
      </Shown>
    </>
  );
}

function PlatformActions({ platform, done }: { platform: Platform; done: () => void }) {
  const admin = useSession().client(AdminService);
  const { caller } = platform;
  const limits: Change = {
    label: 'Change limits',
    title: `Change the limits of ${caller}`,
    text: 'The new limits are effective at once.',
    fields: limitFields(platform),
    run: (values, options) => {
      const { reason, cap } = values;
      return admin.updatePlatform({ caller, ...limitsOf(values), noFilingCap: cap === '', reason }, options);
    },
  };
  const suspend: Change = {
    label: 'Suspend platform',
    title: `Suspend ${caller}?`,
    text: 'Calls with any of its keys are rejected until it is resumed. Open orders are still settled.',
    isDanger: true,
    run: ({ reason }, options) => admin.suspendPlatform({ caller, reason }, options),
  };
  const resume: Change = {
    label: 'Resume platform',
    title: `Resume ${caller}?`,
    text: 'Its active keys are accepted again. Keys that were suspended one by one stay suspended.',
    run: ({ reason }, options) => admin.resumePlatform({ caller, reason }, options),
  };
  const isActive = platform.status === Platform_Status.ACTIVE;
  return <Actions of={[limits, isActive ? suspend : resume]} done={done} />;
}

/** The keys of a platform. */
function Keys({ caller }: { caller: string }) {
  const admin = useSession().client(AdminService);
  const loaded = useLoad(async () => admin.listKeys({ caller, pageSize: 100 }), caller);
  const columns: readonly Column<Key>[] = [
    ['Key', ({ apiKey, keyId }) => <code title={keyId}>{apiKey}</code>],
    ['Status', ({ status }) => <Badge>{word(Key_Status, status)}</Badge>],
    ['Created', ({ createdAt }) => <Time at={createdAt} />],
    ['Expires', ({ expiresAt }) => <Time at={expiresAt} />],
    ['Actions', (key) => <KeyActions of={key} done={loaded.reload} />],
  ];
  return (
    <Section title="API keys">
      <Shown of={loaded}>
        {({ keys }) => <Table caption="API keys" columns={columns} rows={keys} empty="It has no key." />}
      </Shown>
    </Section>
  );
}

const overlaps = [
  ['86400', 'A day'],
  ['604800', 'A week'],
  ['3600', 'An hour'],
  ['0', 'None: revoke the old key now'],
] as const;

function KeyActions({ of: { keyId, apiKey, status }, done }: { of: Key; done: () => void }) {
  const admin = useSession().client(AdminService);
  if (status === Key_Status.REVOKED) return null;
  const rotate: Change = {
    label: 'Rotate',
    title: 'Rotate the key?',
    text: `The platform gets another key and secret. ${apiKey} stays valid for the overlap, then it is revoked.`,
    fields: [{ name: 'overlap', label: 'Overlap', options: overlaps }],
    run: async ({ overlap, reason }, options) => {
      const request = { keyId, overlapSeconds: Number(overlap), reason };
      const { key, apiSecret } = await admin.rotateKey(request, options);
      return <IssuedKey apiKey={key?.apiKey ?? ''} apiSecret={apiSecret} />;
    },
  };
  const suspend: Change = {
    label: 'Suspend',
    title: 'Suspend the key?',
    text: `Calls with ${apiKey} are rejected until it is resumed.`,
    isDanger: true,
    run: ({ reason }, options) => admin.suspendKey({ keyId, reason }, options),
  };
  const resume: Change = {
    label: 'Resume',
    title: 'Resume the key?',
    text: `Calls with ${apiKey} are accepted again.`,
    run: ({ reason }, options) => admin.resumeKey({ keyId, reason }, options),
  };
  const revoke: Change = {
    label: 'Revoke',
    title: 'Revoke the key for ever?',
    text: `Calls with ${apiKey} are rejected from now on. This cannot be undone.`,
    isDanger: true,
    run: ({ reason }, options) => admin.revokeKey({ keyId, reason }, options),
  };
  return <Actions of={[rotate, status === Key_Status.ACTIVE ? suspend : resume, revoke]} done={done} />;
}
