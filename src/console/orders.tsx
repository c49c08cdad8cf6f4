import { useEffect } from 'preact/hooks';
import {
  type Escrow,
  Escrow_State,
  type EscrowChange,
  EscrowChange_Payment,
  EscrowService,
} from '../../gen/artseal/v1/escrow_pb.ts';
import {
  DecideOrderRequest_Decision as Decision,
  Order_OpenInstruction_Kind as Kind,
  type Order,
  ReviewService,
  Order_OpenInstruction_Status as Status,
} from '../../gen/artseal/v1/review_pb.ts';
import { Actions, type Change } from './action.tsx';
import { link, money, word } from './format.ts';
import { useSession } from './session.ts';
import {
  Badge,
  type Column,
  Facts,
  Filter,
  PagedTable,
  Ref,
  Section,
  Shown,
  Table,
  Time,
  Title,
  useLoad,
} from './ui.tsx';

/** The columns of orders. */
export const escrowColumns: readonly Column<Escrow>[] = [
  ['Order', ({ escrowId }) => <Ref to="orders" id={escrowId} />],
  ['State', ({ state }) => <Badge>{word(Escrow_State, state)}</Badge>],
  ['Amount', ({ amount, currency }) => <span class="id">{money(amount, currency)}</span>],
  ['Filing', ({ filingNo }) => <Ref to="filings" id={filingNo} />],
  ['Platform', ({ caller }) => caller],
  ['Opened', ({ timestamp }) => <Time at={timestamp} />],
];

/** The order of an id as operators see it, or as callers do if the token cannot operate. */
interface FoundOrder {
  readonly escrow: Escrow;
  readonly review?: string | undefined;
  readonly reference?: string | undefined;
  readonly underWay: readonly { readonly kind: Kind; readonly status: Status }[];
}

const foundOrder = ({ escrow, ...rest }: Order): FoundOrder[] => (escrow ? [{ escrow, ...rest }] : []);

const inReview = 'REVIEW';
const states = ['UNPAID', 'FROZEN', 'RELEASED', 'REFUNDED', 'CLOSED'] as const;

/** Orders, newest first: all, those in a state, or those in review. */
export function OrdersView({ filter }: { filter: string }) {
  const { client, can } = useSession();
  const selected = filter.toUpperCase();
  const state = Escrow_State[states.find((word) => word === selected) ?? 'STATE_UNSPECIFIED'];
  const review: Column<FoundOrder> = ['Waits for you because', ({ review: why }) => why];
  const columns = escrowColumns.map(
    ([heading, cell]): Column<FoundOrder> => [heading, ({ escrow }) => cell(escrow)],
  );
  return (
    <>
      <Title>Orders</Title>
      <Filter
        label="Show"
        options={[
          ['', 'All orders'],
          ...(can('OPERATE') ? [[inReview, 'In review'] as const] : []),
          ...states.map((word) => [word, word] as const),
        ]}
        value={selected}
        change={(value) => {
          location.hash = value === '' ? link('orders') : link('orders', value.toLowerCase());
        }}
      />
      <PagedTable
        caption="Orders"
        again={selected}
        columns={selected === inReview ? [...columns, review] : columns}
        empty={selected === inReview ? 'No order waits for a decision.' : 'There is no such order.'}
        items="orders"
        read={async (page) => {
          if (can('OPERATE')) {
            const request = { ...page, state, needsReview: selected === inReview };
            const { orders, nextPageToken } = await client(ReviewService).listOrders(request);
            return { orders: orders.flatMap(foundOrder), nextPageToken };
          }
          const { escrows, nextPageToken } = await client(EscrowService).listEscrows({ ...page, state });
          return { orders: escrows.map((escrow) => ({ escrow, underWay: [] })), nextPageToken };
        }}
      />
    </>
  );
}

/** How often an order is read again while an instruction is under way, in milliseconds. */
const refreshMs = 3_000;

/** An order: its money, history and instructions, and the moves that it allows. */
export function OrderView({ escrowId }: { escrowId: string }) {
  const { client, can } = useSession();
  const loaded = useLoad(async (): Promise<FoundOrder> => {
    const { orders } = can('OPERATE') ? await client(ReviewService).listOrders({ escrowId }) : { orders: [] };
    const [order] = orders.flatMap(foundOrder);
    if (order !== undefined) return order;
    // It says what is wrong if there is no such order.
    const { escrow } = await client(EscrowService).getEscrow({ escrowId });
    if (escrow === undefined) throw new Error('The response has no order.');
    return { escrow, underWay: [] };
  }, escrowId);
  const { review: stopped, underWay: open = [] } = loaded.data ?? {};
  const isUnderWay = stopped === undefined && open.length > 0;
  useEffect(() => {
    if (!isUnderWay) return;
    const timer = setInterval(loaded.reload, refreshMs);
    return () => clearInterval(timer);
  }, [isUnderWay, loaded.reload]);
  return (
    <>
      <Title actions={loaded.data && <Moves order={loaded.data} done={loaded.reload} />}>{escrowId}</Title>
      <Shown of={loaded}>
        {({ escrow, review, reference, underWay }) => (
          <>
            {review !== undefined && (
              <div class="problem">
                <p>
                  <strong>This order waits for your decision.</strong> {review}
                </p>
              </div>
            )}
            <Facts
              of={[
                ['State', <Badge>{word(Escrow_State, escrow.state)}</Badge>],
                ['Amount', money(escrow.amount, escrow.currency)],
                ['Filing', <Ref to="filings" id={escrow.filingNo} />],
                ['Opened by', escrow.caller],
                ['Opened', <Time at={escrow.timestamp} />],
                ['Buyer', escrow.buyerId],
                ['Seller', escrow.sellerId],
                ['Hold lapses', escrow.holdExpiresAt && <Time at={escrow.holdExpiresAt} />],
                ['Buyer can act until', escrow.nextAction && <Time at={escrow.nextAction.expiresAt} />],
                ['Id at the provider', reference && <code>{reference}</code>],
                [
                  'Instructions to the provider',
                  underWay
                    .map(({ kind, status }) => `${word(Kind, kind)} ${word(Status, status)}`)
                    .join(', '),
                ],
              ]}
            />
            <Section title="History">
              <Table
                caption="History"
                columns={historyColumns(escrow.currency)}
                rows={escrow.history}
                empty="It has none."
              />
            </Section>
          </>
        )}
      </Shown>
    </>
  );
}

const historyColumns = (currency: string): readonly Column<EscrowChange>[] => [
  ['At', ({ at }) => <Time at={at} />],
  ['State', ({ state }) => <Badge>{word(Escrow_State, state)}</Badge>],
  ['Payment', ({ payment }) => word(EscrowChange_Payment, payment)],
  ['Seller still has', ({ left }) => (left === undefined ? '' : money(left, currency))],
  ['Decided by', ({ byOperator }) => (byOperator ? 'operator' : 'provider')],
];

type Decided = Exclude<keyof typeof Decision, 'DECISION_UNSPECIFIED'>;

/** Each decision: its button, the question, what it does, and whether it cannot be undone. */
const decisions: Readonly<Record<Decided, readonly [string, string, string, boolean?]>> = {
  LOOK_AGAIN: [
    'Ask the provider again',
    'Ask the provider again?',
    'Use this after you corrected the difference at the provider.',
  ],
  ACCEPT: [
    'Accept',
    'Accept the status of the provider?',
    'The order takes what the provider reports, as it is.',
    true,
  ],
  RETURN: [
    'Return the money',
    'Return the money to the buyer?',
    'The provider gives back what it holds. This can replace a release that did not arrive.',
    true,
  ],
  STOP: ['Stop waiting', 'Stop asking the provider?', 'The order then waits for your decision.'],
  CLOSE: ['Close', 'Close the unpaid order?', 'A hold that arrives later goes back to the buyer.', true],
};

/** The moves that the state of an order allows. The server has the last word: it may reject one, and says why. */
function Moves({ order: { escrow, review, underWay }, done }: { order: FoundOrder; done: () => void }) {
  const { client } = useSession();
  const { escrowId, state } = escrow;
  const waits = review === undefined && underWay.length > 0;
  const decide = (decision: Decided): Change => {
    const [label, title, text, isDanger = false] = decisions[decision];
    return {
      ...{ label, title, text, isDanger },
      run: ({ reason }, options) =>
        client(ReviewService).decideOrder({ escrowId, decision: Decision[decision], reason }, options),
    };
  };
  const settle = (label: string, text: string, call: 'releaseEscrow' | 'refundEscrow'): Change => ({
    ...{ label, title: `${label}?`, text, scope: 'ESCROW', isDanger: true, hasReason: false },
    run: (_, options) => client(EscrowService)[call]({ escrowId }, options),
  });
  const end: Change = {
    label: 'End without the provider',
    title: 'End the order without the provider?',
    text: 'Only if the provider will never respond again. It gets no further instruction.',
    isDanger: true,
    fields: [
      {
        name: 'end',
        label: 'How it ended',
        options: [
          ['RELEASED', 'RELEASED: the seller was paid'],
          ['REFUNDED', 'REFUNDED: the buyer has the money'],
          ['CLOSED', 'CLOSED: nothing was held'],
        ],
      },
      {
        name: 'evidence',
        label: 'File that proves this end',
        type: 'file',
        help: 'The server stores its SHA-256, not the file.',
      },
    ],
    run: async ({ end: word = '', reason }, options, form) => {
      const request = { escrowId, end: Escrow_State[word as (typeof states)[number]], reason };
      return client(ReviewService).endOrder(
        { ...request, evidence: await sha256(form.get('evidence')) },
        options,
      );
    },
  };
  const isFrozen = state === Escrow_State.FROZEN && review === undefined && underWay.length === 0;
  const moves = [
    ...(review === undefined ? [] : (['LOOK_AGAIN', 'ACCEPT', 'RETURN'] as const).map(decide)),
    isFrozen &&
      settle('Release', 'The provider pays the seller, and the artwork is transferred.', 'releaseEscrow'),
    isFrozen && settle('Refund', 'The money goes back to the buyer.', 'refundEscrow'),
    waits && decide('STOP'),
    state === Escrow_State.UNPAID && decide('CLOSE'),
    (waits || review !== undefined) && end,
  ];
  return <Actions of={moves} done={done} />;
}

/** The SHA-256 of a file, in hex. */
async function sha256(file: FormDataEntryValue | null): Promise<string> {
  if (!(file instanceof File)) throw new Error('no file was chosen');
  // Browsers have it over https, and on the machine of the server.
  if (crypto.subtle === undefined)
    throw new Error('this browser computes SHA-256 only over https or at 127.0.0.1');
  const digest = await crypto.subtle.digest('SHA-256', await file.arrayBuffer());
  return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, '0')).join('');
}
