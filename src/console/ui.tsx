import type { ComponentChildren } from 'preact';
import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import { instant } from './format.ts';
import { type Problem, problemOf } from './session.ts';

/** What a view has read from the server so far. */
export interface Loaded<T> {
  readonly data: T | undefined;
  readonly problem: Problem | undefined;
  readonly isLoading: boolean;
  reload(): void;
}

/** Reads something when the component is shown and whenever `key` changes. The result of an older read is ignored. */
export function useLoad<T>(read: () => Promise<T>, key: string): Loaded<T> {
  const [state, setState] = useState<Omit<Loaded<T>, 'reload'> & { readonly key: string }>();
  const [round, setRound] = useState(0);
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
  const reload = useCallback(() => setRound((last) => last + 1), []);
  if (state === undefined || state.key !== key)
    return { data: undefined, problem: undefined, isLoading: true, reload };
  return { ...state, reload };
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
export interface PageFields {
  readonly pageSize: number;
  readonly pageToken: string;
}

/** The rows of a page, and the token of the next one; empty on the last page. */
export interface PageOf<Row> {
  readonly rows: readonly Row[];
  readonly next: string;
}

const rowsPerPage = 25;

/** A table of a list that is read page by page. `again` is another value when the list must be read again. */
export function PagedTable<Row>({
  read,
  again = '',
  ...table
}: {
  read: (page: PageFields) => Promise<PageOf<Row>>;
  again?: string;
  caption: string;
  columns: readonly Column<Row>[];
  empty: string;
}) {
  const [tokens, setTokens] = useState<readonly string[]>(['']);
  const token = tokens.at(-1) ?? '';
  const loaded = useLoad(() => read({ pageSize: rowsPerPage, pageToken: token }), `${again} ${token}`);
  useEffect(() => setTokens(['']), [again]);
  return (
    <Shown of={loaded}>
      {({ rows, next }) => (
        <>
          <Table {...table} rows={rows} />
          {(tokens.length > 1 || next !== '') && (
            <nav class="pages" aria-label={`Pages: ${table.caption}`}>
              <button
                type="button"
                disabled={tokens.length === 1}
                onClick={() => setTokens(tokens.slice(0, -1))}
              >
                Previous
              </button>
              <span class="quiet">Page {tokens.length}</span>
              <button type="button" disabled={next === ''} onClick={() => setTokens([...tokens, next])}>
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
  ...{ SUSPENDED: 'bad', REVOKED: 'off', EXPIRED: 'off', DISABLED: 'bad', FAILED: 'bad', REVIEW: 'bad' },
  ...{ PENDING: 'wait', WAITING: 'wait', UNPAID: 'wait', FROZEN: 'wait' },
};

/** A status word, with a colour that repeats what it says. */
export const Badge = ({ children }: { children: string }) => (
  <span class={`badge ${tones[children] ?? 'off'}`}>{children}</span>
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
