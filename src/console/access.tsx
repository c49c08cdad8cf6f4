import {
  AdminService,
  type AuditEntry,
  type Party,
  Party_Role,
  type Token,
  Token_Scope,
  Token_Status,
} from '../../gen/artseal/v1/admin_pb.ts';
import { Actions, type Change } from './action.tsx';
import { word } from './format.ts';
import { useSession } from './session.ts';
import { Badge, type Column, PagedTable, Secret, Time, Title, useRound } from './ui.tsx';

/** What each scope allows. */
const scopeTexts = {
  READ: 'read: filings, provenance, orders, events and webhooks',
  FILE: 'file: file artworks',
  ESCROW: 'escrow: open, release and refund orders',
  WEBHOOK: 'webhook: manage webhook endpoints',
  LINK: 'link: create and revoke public links to evidence',
  OPERATE: 'operate: everything that operators do',
};
const scopes = Object.keys(scopeTexts) as (keyof typeof scopeTexts)[];

/** The tokens of internal systems. */
export function TokensView() {
  const { client, tokenId: ownId } = useSession();
  const admin = client(AdminService);
  const { round, again } = useRound();
  const create: Change = {
    label: 'Create token',
    title: 'Create a token',
    text: 'An internal system sends it as Authorization: Bearer.',
    fields: [
      { name: 'name', label: 'Name of the internal system', maxLength: 128 },
      ...scopes.map((scope) => ({ name: scope, label: scopeTexts[scope], type: 'checkbox' as const })),
      { name: 'platform', label: 'Platform', isOptional: true, help: 'Limits the token to that platform.' },
      {
        name: 'expires',
        label: 'Expires',
        type: 'datetime-local',
        isOptional: true,
        help: 'In your time zone.',
      },
    ],
    run: async ({ name = '', platform = '', expires = '', reason, ...chosen }, options) => {
      const { text } = await admin.createToken(
        {
          ...{ name, platform, reason },
          scopes: scopes.filter((scope) => chosen[scope] === 'on').map((scope) => Token_Scope[scope]),
          expiresAt: expires === '' ? '' : new Date(expires).toISOString(),
        },
        options,
      );
      return (
        <>
          <p>
            <strong>Copy the token now.</strong> It is not shown again.
          </p>
          <Secret label="Token" text={text} />
        </>
      );
    },
  };
  const revoke = ({ tokenId, name }: Token): Change => ({
    label: 'Revoke',
    title: 'Revoke the token for ever?',
    text: `Calls with ${tokenId} of ${name} are rejected from now on. This cannot be undone.`,
    isDanger: true,
    run: ({ reason }, options) => admin.revokeToken({ tokenId, reason }, options),
  });
  const columns: readonly Column<Token>[] = [
    ['Name', ({ name }) => name],
    ['Token', ({ tokenId }) => <code>{tokenId}</code>],
    ['Status', ({ status }) => <Badge>{word(Token_Status, status)}</Badge>],
    [
      'Scopes',
      (token) => token.scopes.map((scope) => word(Token_Scope, scope).toLowerCase()).join(', ') || 'none',
    ],
    ['Platform', ({ platform }) => platform],
    ['Expires', ({ expiresAt }) => <Time at={expiresAt} />],
    [
      'Actions',
      (token) =>
        token.tokenId === ownId ? (
          <span class="quiet">your session</span>
        ) : (
          <Actions of={[token.status === Token_Status.VALID && revoke(token)]} done={again} />
        ),
    ],
  ];
  return (
    <>
      <Title actions={<Actions of={[create]} done={again} />}>Tokens</Title>
      <PagedTable
        caption="Tokens"
        again={String(round)}
        columns={columns}
        empty="There is no token."
        items="tokens"
        read={(page) => admin.listTokens(page)}
      />
    </>
  );
}

/** Reads `customer=cus_1, account=acct_1`. */
const providerIds = (text: string): Record<string, string> =>
  Object.fromEntries(
    text
      .split(',')
      .map((pair) => pair.trim())
      .filter((pair) => pair !== '')
      .map((pair) => {
        const at = pair.indexOf('=');
        return at < 0 ? [pair, ''] : [pair.slice(0, at).trim(), pair.slice(at + 1).trim()];
      }),
  );

/** The registered buyers and sellers. */
export function PartiesView() {
  const admin = useSession().client(AdminService);
  const { round, again } = useRound();
  const add: Change = {
    label: 'Add party',
    title: 'Add a buyer or seller',
    text: 'It replaces a party with the same id. New orders use its ids at once.',
    fields: [
      { name: 'caller', label: 'Platform or internal system', maxLength: 128 },
      {
        name: 'role',
        label: 'Role',
        options: [
          ['BUYER', 'Buyer'],
          ['SELLER', 'Seller'],
        ],
      },
      { name: 'partyId', label: 'Id at the platform', maxLength: 128 },
      {
        name: 'ids',
        label: 'Ids at the payment provider',
        isOptional: true,
        help: 'As in customer=cus_1, paymentMethod=pm_1.',
      },
    ],
    run: ({ caller = '', role = '', partyId = '', ids = '', reason }, options) => {
      const party = {
        caller,
        partyId,
        role: Party_Role[role as 'BUYER' | 'SELLER'],
        providerIds: providerIds(ids),
      };
      return admin.addParty({ ...party, reason }, options);
    },
  };
  const remove = ({ caller, role, partyId }: Party): Change => ({
    label: 'Remove',
    title: `Remove ${partyId}?`,
    text: `New orders of ${caller} that name it are rejected. Open orders keep its ids.`,
    isDanger: true,
    run: ({ reason }, options) => admin.removeParty({ caller, role, partyId, reason }, options),
  });
  const columns: readonly Column<Party>[] = [
    ['Party', ({ partyId }) => partyId],
    ['Role', ({ role }) => word(Party_Role, role)],
    ['Platform', ({ caller }) => caller],
    [
      'Ids at the provider',
      (party) =>
        Object.entries(party.providerIds)
          .map(([name, id]) => `${name}=${id}`)
          .join(', '),
    ],
    ['Added', ({ addedAt }) => <Time at={addedAt} />],
    ['Actions', (party) => <Actions of={[remove(party)]} done={again} />],
  ];
  return (
    <>
      <Title actions={<Actions of={[add]} done={again} />}>Parties</Title>
      <PagedTable
        caption="Parties"
        again={String(round)}
        columns={columns}
        empty="No buyer or seller is registered. The simulated provider needs none."
        items="parties"
        read={(page) => admin.listParties(page)}
      />
    </>
  );
}

const auditColumns: readonly Column<AuditEntry>[] = [
  ['At', ({ at }) => <Time at={at} />],
  ['Operator', ({ actor }) => actor],
  ['Action', ({ action }) => action],
  ['Subject', ({ subject }) => <code>{subject}</code>],
  ['Reason', ({ reason }) => reason],
  [
    'Change',
    ({ before, after }) =>
      (before !== '' || after !== '') && (
        <details>
          <summary>Show</summary>
          {before !== '' && <pre>before {before}</pre>}
          {after !== '' && <pre>after {after}</pre>}
        </details>
      ),
  ],
];

/** What operators changed. */
export function AuditLogView() {
  const admin = useSession().client(AdminService);
  return (
    <>
      <Title>Audit log</Title>
      <PagedTable
        caption="Audit log"
        columns={auditColumns}
        empty="No operator has changed anything yet."
        items="entries"
        read={(page) => admin.listAuditLog(page)}
      />
    </>
  );
}
