import { toJsonString } from '@bufbuild/protobuf';
import { useState } from 'preact/hooks';
import { EscrowService } from '../../gen/artseal/v1/escrow_pb.ts';
import { EvidenceBundleSchema, EvidenceService } from '../../gen/artseal/v1/evidence_pb.ts';
import { type Filing, FilingService } from '../../gen/artseal/v1/filing_pb.ts';
import { MaintenanceService } from '../../gen/artseal/v1/maintenance_pb.ts';
import { ProvenanceRecord_Event, ProvenanceService } from '../../gen/artseal/v1/provenance_pb.ts';
import { type Check, checkBundle, type Outcome } from '../evidence/verifier/outcome.ts';
import { money, word } from './format.ts';
import { escrowColumns } from './orders.tsx';
import { useSession } from './session.ts';
import { type Column, Facts, PagedTable, Ref, Section, Shown, Table, Time, Title, useLoad } from './ui.tsx';

const columns: readonly Column<Filing>[] = [
  ['Number', ({ filingNo }) => <Ref to="filings" id={filingNo} />],
  ['Author', ({ author }) => author],
  ['Material', ({ material }) => material],
  ['Price', ({ price, currency }) => <span class="id">{money(price, currency)}</span>],
  ['Platform', ({ caller }) => caller],
  ['Filed', ({ timestamp }) => <Time at={timestamp} />],
];

/** All filings, newest first. */
export function FilingsView() {
  const filings = useSession().client(FilingService);
  return (
    <>
      <Title>Filings</Title>
      <PagedTable
        caption="Filings"
        columns={columns}
        empty="Nothing has been filed yet."
        items="filings"
        read={(page) => filings.listFilings(page)}
      />
    </>
  );
}

/** A filing: its record, provenance, orders, and the proof that it is in the evidence log. */
export function FilingView({ filingNo }: { filingNo: string }) {
  const { client } = useSession();
  const [sequence, setSequence] = useState(1);
  const loaded = useLoad(async () => {
    const [{ filing }, provenance] = await Promise.all([
      client(FilingService).getFiling({ filingNo }),
      client(ProvenanceService).getProvenance({ filingNo }),
    ]);
    return {
      filing,
      records: provenance.records.map((record, place) => ({ ...record, sequence: place + 1 })),
    };
  }, filingNo);
  return (
    <>
      <Title>{filingNo}</Title>
      <Shown of={loaded}>
        {({ filing, records }) => (
          <>
            {filing !== undefined && <Record filing={filing} />}
            <Section title="Provenance">
              <Table
                caption="Provenance"
                rows={records}
                empty="There is no record."
                columns={[
                  ['Record', (record) => record.sequence],
                  ['Event', ({ event }) => word(ProvenanceRecord_Event, event)],
                  ['Date', ({ at }) => at],
                  [
                    'Proof',
                    (record) => (
                      <button
                        type="button"
                        aria-pressed={record.sequence === sequence}
                        onClick={() => setSequence(record.sequence)}
                      >
                        Check record {record.sequence}
                      </button>
                    ),
                  ],
                ]}
              />
            </Section>
            <Proof filingNo={filingNo} sequence={sequence} />
            <Section title="Orders">
              <PagedTable
                caption="Orders for this filing"
                columns={escrowColumns}
                empty="It was never for sale."
                items="escrows"
                read={(page) => client(EscrowService).listEscrows({ ...page, filingNo })}
              />
            </Section>
          </>
        )}
      </Shown>
    </>
  );
}

function Record({ filing }: { filing: Filing }) {
  return (
    <Facts
      of={[
        ['Author', filing.author],
        ['Era', filing.era],
        ['Size', filing.size],
        ['Material', filing.material],
        ['Condition', filing.condition],
        ['Price', money(filing.price, filing.currency)],
        ['Filed by', filing.caller],
        ['Filed', <Time at={filing.timestamp} />],
        ['Evidence hash', <code>{filing.hash}</code>],
        ...filing.attachments.map(
          ({ name, sha256 }, nth) =>
            [
              `Attachment ${nth + 1}`,
              <>
                {name} <code>{sha256}</code>
              </>,
            ] as const,
        ),
      ]}
    />
  );
}

/** Reads the evidence of a record, and checks it in the browser against the key of the log. */
function Proof({ filingNo, sequence }: { filingNo: string; sequence: number }) {
  const { client, can } = useSession();
  const [ownKey, setOwnKey] = useState('');
  const loaded = useLoad(async () => {
    const [{ bundle }, { keys }] = await Promise.all([
      client(EvidenceService).getEvidence({ filingNo, sequence }),
      can('OPERATE') ? client(MaintenanceService).listLogKeys({}) : { keys: [] },
    ]);
    if (bundle === undefined) throw new Error('The response has no evidence.');
    const text = toJsonString(EvidenceBundleSchema, bundle);
    return { bundle: new TextEncoder().encode(text), keys: keys.map(({ vkey }) => vkey).join('\n') };
  }, `${filingNo} ${sequence}`);
  return (
    <Section title={`Proof of record ${sequence}`}>
      <Shown of={loaded}>
        {({ bundle, keys }) => {
          const key = ownKey.trim() || keys;
          return (
            <>
              {key === '' ? (
                <p>
                  Enter the verifier key of the log to check the proof. Your token cannot read it from the
                  server.
                </p>
              ) : (
                <Result of={checkBundle(bundle, key, '')} />
              )}
              <div class="field">
                <label for="vkey">
                  Verifier key <span class="quiet">(optional)</span>
                </label>
                <input
                  id="vkey"
                  value={ownKey}
                  spellcheck={false}
                  onInput={({ currentTarget }) => setOwnKey(currentTarget.value)}
                />
                <p class="quiet">
                  Checked in this browser
                  {keys !== '' && ownKey.trim() === '' && ', against the key that this server names'}. A key
                  that you got elsewhere proves more.
                </p>
              </div>
            </>
          );
        }}
      </Shown>
    </Section>
  );
}

const marks = { passed: '✓ passed', failed: '✗ failed', open: '– not checked' } as const satisfies Record<
  Check['state'],
  string
>;

function Result({ of: { isProven, verdict, checks, proven, notProven, record } }: { of: Outcome }) {
  return (
    <div class={isProven ? 'verdict good' : 'verdict bad'}>
      <p role="status">
        <strong>{verdict}</strong>
      </p>
      <ul>
        {proven.map((sentence) => (
          <li key={sentence}>{sentence}</li>
        ))}
      </ul>
      <details>
        <summary>The checks, and what is not proven</summary>
        <ul>
          {checks.map(({ name, state, words }) => (
            <li key={name}>
              {marks[state]} · {name}: {words}
            </li>
          ))}
        </ul>
        <p>Not proven:</p>
        <ul>
          {notProven.map((sentence) => (
            <li key={sentence}>{sentence}</li>
          ))}
        </ul>
        {record !== undefined && <pre>{record}</pre>}
      </details>
    </div>
  );
}
