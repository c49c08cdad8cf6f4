import type { ComponentChildren } from 'preact';
import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import { instant, link } from './format.ts';
import { type Problem, problemOf } from './session.ts';

/** What a view has read from the server so far. */
interface Loaded<T> {
  readonly data: T | undefined;
  readonly problem: Problem | undefined;
  readonly isLoading: boolean;
  reload(): void;
}

/** Reads something when the component is shown and whenever `key` changes. The result of an older read is ignored. */
export function useLoad<T>(read: () => Promise<T>, key: string): Loaded<T> {
  const [state, setState] = useState<Omit<Loaded<T>, 'reload'> & { readonly key: string }>();
  const { round, again: reload } = useRound();
  useEffect(() => {
    let isCurrent = true;
    const show = (result: { data?: T; problem?: Problem }) => {
      const { data, problem } = result;
      if (isCurrent) setState({ data, problem, isLoading: false, key });
    };
    read().then(
      (data) => show({ data }),
      (error) => show({ problem: problemOf(error) }),
    );
    return () => {
      isCurrent = false;
    };
  }, [key, round]);
  if (state === undefined || state.key !== key)
    return { data: undefined, problem: undefined, isLoading: true, reload };
  return { ...state, reload };
}

/** A number that counts how often `again` was called. A list takes it, as a text, as what it is read again for. */
export function useRound(): { readonly round: number; readonly again: () => void } {
  const [round, setRound] = useState(0);
  const again = useCallback(() => setRound((last) => last + 1), []);
  return { round, again };
}

/** Shows what was read, the error, or that it is being read. */
export function Shown<T>({ of, children }: { of: Loaded<T>; children: (data: T) => ComponentChildren }) {
  if (of.problem !== undefined) return <ProblemBox problem={of.problem} retry={of.reload} />;
  if (of.data === undefined) return <p class="quiet">Loading…</p>;
  return <>{children(of.data)}</>;
}

/** An error with its code and the id of its request. */
export function ProblemBox({ problem, retry }: { problem: Problem; retry?: () => void }) {
  return (
    <div class="problem" role="alert">
      <p>{problem.message}</p>
      <p class="quiet">
        <code>{problem.code}</code>
        {problem.requestId !== undefined && (
          <>
            {' '}
            · request <code>{problem.requestId}</code>
          </>
        )}
      </p>
      {retry !== undefined && (
        <button type="button" onClick={retry}>
          Try again
        </button>
      )}
    </div>
  );
}

/** The heading of a view, which gets the focus when the view is opened. */
export function Title({ children, actions }: { children: ComponentChildren; actions?: ComponentChildren }) {
  return (
    <div class="title">
      <h1 tabIndex={-1}>{children}</h1>
      {actions}
    </div>
  );
}

/** A part of a view. */
export function Section({
  title,
  actions,
  children,
}: {
  title: string;
  actions?: ComponentChildren;
  children: ComponentChildren;
}) {
  return (
    <section>
      <div class="title">
        <h2>{title}</h2>
        {actions}
      </div>
      {children}
    </section>
  );
}

/** A column of a table: its heading, and what it shows of a row. */
export type Column<Row> = readonly [heading: string, cell: (row: Row) => ComponentChildren];

/** A table. On a narrow screen each row is a card. */
export function Table<Row>({
  caption,
  columns,
  rows,
  empty,
}: {
  caption: string;
  columns: readonly Column<Row>[];
  rows: readonly Row[];
  empty: string;
}) {
  if (rows.length === 0) return <p class="quiet empty">{empty}</p>;
  return (
    <table>
      <caption class="hidden">{caption}</caption>
      <thead>
        <tr>
          {columns.map(([heading]) => (
            <th scope="col" key={heading}>
              {heading}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map((row, place) => (
          <tr key={place}>
            {columns.map(([heading, cell]) => (
              <td key={heading} data-heading={heading}>
                <div>{cell(row)}</div>
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** The paging fields of a list request. */
interface PageFields {
  readonly pageSize: number;
  readonly pageToken: string;
}

const rowsPerPage = 25;

/**
 * A table of a list that is read page by page. `items` is the member of its response that has the rows. `again` is another value
 * when the list must be read again, from its first page.
 */
export function PagedTable<Row, Name extends string>({
  read,
  items,
  again = '',
  ...table
}: {
  read: (
    page: PageFields,
  ) => Promise<{ readonly nextPageToken: string } & { readonly [Items in Name]: readonly Row[] }>;
  items: Name;
  again?: string;
  caption: string;
  columns: readonly Column<Row>[];
  empty: string;
}) {
  const [pages, setPages] = useState({ again, tokens: [''] });
  // The tokens of another list are not valid for this one.
  const tokens = pages.again === again ? pages.tokens : [''];
  const show = (shown: string[]) => setPages({ again, tokens: shown });
  const pageToken = tokens.at(-1) ?? '';
  const loaded = useLoad(() => read({ pageSize: rowsPerPage, pageToken }), `${again} ${pageToken}`);
  return (
    <Shown of={loaded}>
      {(response) => (
        <>
          <Table {...table} rows={response[items]} />
          {(tokens.length > 1 || response.nextPageToken !== '') && (
            <nav class="pages" aria-label={`Pages: ${table.caption}`}>
              <button type="button" disabled={tokens.length === 1} onClick={() => show(tokens.slice(0, -1))}>
                Previous
              </button>
              <span class="quiet">Page {tokens.length}</span>
              <button
                type="button"
                disabled={response.nextPageToken === ''}
                onClick={() => show([...tokens, response.nextPageToken])}
              >
                Next
              </button>
            </nav>
          )}
        </>
      )}
    </Shown>
  );
}

/** Names and values. Those without a value are left out. */
export function Facts({ of }: { of: readonly (readonly [name: string, value: ComponentChildren])[] }) {
  const known = of.filter(([, value]) => value !== undefined && value !== '' && value !== null);
  return (
    <dl>
      {known.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

const tones: Readonly<Record<string, string>> = {
  ...{ ACTIVE: 'good', VALID: 'good', ENABLED: 'good', DELIVERED: 'good', RELEASED: 'good' },
  ...{ SUSPENDED: 'bad', REVOKED: 'off', EXPIRED: 'off', DISABLED: 'bad', FAILED: 'bad' },
  ...{ PENDING: 'wait', WAITING: 'wait', UNPAID: 'wait', FROZEN: 'wait' },
  ...{ SENT: 'good', UNKNOWN: 'bad', BOUNCED: 'bad', DUE: 'wait', SENDING: 'wait' },
};

/** A status word, with a colour that repeats what it says. */
export const Badge = ({ children }: { children: string }) => (
  <span class={`badge ${tones[children] ?? 'off'}`}>{children}</span>
);

/** A link to the view of something, by its id or name. */
export const Ref = ({ to, id }: { to: string; id: string }) => (
  <a class="id" href={link(to, id)}>
    {id}
  </a>
);

/** A time as the server wrote it, in its business time zone. */
export const Time = ({ at }: { at: string | undefined }) =>
  at ? <time dateTime={at}>{instant(at)}</time> : <span class="quiet">–</span>;

/** Text that is shown once, with a button that copies it. */
export function Secret({ label, text }: { label: string; text: string }) {
  const input = useRef<HTMLInputElement>(null);
  const [note, setNote] = useState('');
  const copy = async () => {
    input.current?.select();
    try {
      await navigator.clipboard.writeText(text);
      setNote('Copied.');
    } catch {
      // Browsers have no clipboard over plain HTTP from another machine.
      setNote('Press Ctrl+C to copy.');
    }
  };
  return (
    <label class="secret">
      {label}
      <span>
        <input ref={input} readOnly value={text} />
        <button type="button" onClick={() => void copy()}>
          Copy
        </button>
      </span>
      <span class="quiet" role="status">
        {note}
      </span>
    </label>
  );
}

/** Has screen readers read a sentence. */
export function announce(text: string): void {
  const status = document.getElementById('status');
  if (status !== null) status.textContent = text;
}

/** A button that reads a list again. */
export function Refresh({ of, again }: { of: string; again: () => void }) {
  const refresh = () => {
    again();
    announce(`${of}: read again.`);
  };
  return (
    <button type="button" onClick={refresh}>
      Refresh
    </button>
  );
}

/** A choice of what a list shows. */
export function Filter({
  label,
  options,
  value,
  change,
}: {
  label: string;
  options: readonly (readonly [value: string, label: string])[];
  value: string;
  change: (value: string) => void;
}) {
  return (
    <label class="filters">
      {label}
      <select value={value} onChange={({ currentTarget }) => change(currentTarget.value)}>
        {options.map(([option, text]) => (
          <option key={option} value={option}>
            {text}
          </option>
        ))}
      </select>
    </label>
  );
}
