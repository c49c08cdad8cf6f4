import { type ComponentChildren, render } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { AuditLogView, PartiesView, TokensView } from './access.tsx';
import { FilingsView, FilingView } from './filings.tsx';
import { link, viewOf } from './format.ts';
import { OrdersView, OrderView } from './orders.tsx';
import { OverviewView } from './overview.tsx';
import { PlatformsView, PlatformView } from './platforms.tsx';
import { RegistrationsView } from './registrations.tsx';
import { RequestsView } from './requests.tsx';
import {
  keptToken,
  openLink,
  type Problem,
  problemOf,
  type Session,
  SessionContext,
  signIn,
  signOut,
  takeLink,
} from './session.ts';
import { ProblemBox } from './ui.tsx';
import { WebhooksView, WebhookView } from './webhooks.tsx';

/** The parts of the hash: `#/orders/ES-…` is `['orders', 'ES-…']`. */
function useRoute(): readonly string[] {
  const [hash, setHash] = useState(location.hash);
  useEffect(() => {
    const change = () => setHash(location.hash);
    addEventListener('hashchange', change);
    // It may have changed before this effect.
    change();
    return () => removeEventListener('hashchange', change);
  }, []);
  return hash
    .replace(/^#\/?/, '')
    .split('/')
    .filter((part) => part !== '')
    .map((part) => {
      try {
        return decodeURIComponent(part);
      } catch {
        return part;
      }
    });
}

/** A view of the console, by the first part of its hash. */
interface View {
  readonly label: string;
  /** What a token needs for it. */
  readonly scope: 'READ' | 'OPERATE';
  /** `id` and `name` are the second and third part of the hash. */
  readonly show: (id?: string, name?: string) => ComponentChildren;
}

const views: Readonly<Record<string, View>> = {
  overview: { label: 'Overview', scope: 'OPERATE', show: () => <OverviewView /> },
  filings: {
    label: 'Filings',
    scope: 'READ',
    show: (id) => (id === undefined ? <FilingsView /> : <FilingView filingNo={id} />),
  },
  orders: {
    label: 'Orders',
    scope: 'READ',
    show: (id = '') => (id.includes('-') ? <OrderView escrowId={id} /> : <OrdersView filter={id} />),
  },
  platforms: {
    label: 'Platforms',
    scope: 'OPERATE',
    show: (id) => (id === undefined ? <PlatformsView /> : <PlatformView name={id} />),
  },
  access: { label: 'Access', scope: 'OPERATE', show: () => <RegistrationsView /> },
  tokens: { label: 'Tokens', scope: 'OPERATE', show: () => <TokensView /> },
  parties: { label: 'Parties', scope: 'OPERATE', show: () => <PartiesView /> },
  webhooks: {
    label: 'Webhooks',
    scope: 'READ',
    show: (id = '') => (id.startsWith('wh_') ? <WebhookView webhookId={id} /> : <WebhooksView filter={id} />),
  },
  requests: {
    label: 'Requests',
    scope: 'OPERATE',
    show: (id, platform) =>
      id === 'of' ? <RequestsView platform={platform} /> : <RequestsView requestId={id} />,
  },
  audit: { label: 'Audit log', scope: 'OPERATE', show: () => <AuditLogView /> },
};

const ended = 'Your session is over: its token has expired or was revoked. Sign in again to continue here.';

function App() {
  const [session, setSession] = useState<Session>();
  const [problem, setProblem] = useState<Problem>();
  const [isOpening, setOpening] = useState(true);
  const rejected = () => {
    setSession(undefined);
    setProblem({
      code: 'AUTH_HEADER_INVALID',
      message: ended,
      requestId: undefined,
      isOpen: false,
    });
  };
  /** Opens a session with the token that `find` resolves to. `unknown` is what to say if the server does not accept it. */
  const open = async (
    find: () => Promise<{ token: string; isFromLink: boolean } | undefined>,
    unknown: string,
  ) => {
    setOpening(true);
    setProblem(undefined);
    try {
      const token = await find();
      if (token !== undefined) setSession(await signIn(token, rejected));
    } catch (error) {
      const found = problemOf(error);
      setProblem(found.code === 'AUTH_HEADER_INVALID' ? { ...found, message: unknown } : found);
    }
    setOpening(false);
  };
  useEffect(() => {
    const oneTime = takeLink();
    if (oneTime === undefined) void open(async () => keptToken(), ended);
    else void open(() => openLink(oneTime), 'This link was used, or has expired. Run artseal console again.');
    // A link that is pasted into this tab does not load the page again by itself.
    const reload = () => location.hash.startsWith('#link=') && location.reload();
    addEventListener('hashchange', reload);
    return () => removeEventListener('hashchange', reload);
  }, []);
  const leave = async (current: Session) => {
    setSession(undefined);
    await signOut(current).catch((error) => setProblem(problemOf(error)));
  };
  if (session === undefined)
    return (
      <SignIn
        problem={problem}
        isOpening={isOpening}
        enter={(token) =>
          open(async () => ({ token, isFromLink: false }), 'The server does not accept this token.')
        }
      />
    );
  return (
    <SessionContext.Provider value={session}>
      <Frame session={session} leave={() => void leave(session)} />
    </SessionContext.Provider>
  );
}

function SignIn({
  problem,
  isOpening,
  enter,
}: {
  problem: Problem | undefined;
  isOpening: boolean;
  enter: (token: string) => Promise<void>;
}) {
  return (
    <main class="sign-in">
      <h1>Artseal console</h1>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          const token = new FormData(event.currentTarget).get('token');
          void enter(String(token).trim());
        }}
      >
        {problem !== undefined && <ProblemBox problem={problem} />}
        <div class="field">
          <label for="token">Token</label>
          <input
            id="token"
            name="token"
            type="password"
            required
            autocomplete="off"
            spellcheck={false}
            pattern="it_.*"
            title="A token begins with it_"
            aria-describedby="token-help"
          />
          <p id="token-help" class="quiet">
            It begins with <code>it_</code>. This tab keeps it until you sign out or close the tab.
          </p>
        </div>
        <button type="submit" class="main" disabled={isOpening}>
          {isOpening ? 'Please wait…' : 'Sign in'}
        </button>
      </form>
      <p class="quiet">
        Or run <code>artseal console</code> on the machine of the server, and open the link that it prints.
      </p>
    </main>
  );
}

function Frame({ session, leave }: { session: Session; leave: () => void }) {
  const [name = '', id, last] = useRoute();
  const allowed = Object.entries(views).filter(([, { scope }]) => session.can(scope));
  const [first = ''] = allowed[0] ?? [];
  const current = name === '' ? first : name;
  // Objects have further members, such as `constructor`.
  const view = Object.hasOwn(views, current) ? views[current] : undefined;
  const place = [current, id, last].join('/');
  useEffect(() => {
    document.title = `${last ?? id ?? view?.label ?? 'Not found'} · Artseal console`;
    if (name !== '') document.querySelector('h1')?.focus();
    scrollTo(0, 0);
  }, [place]);
  return (
    <>
      <button type="button" class="skip" onClick={() => document.querySelector('h1')?.focus()}>
        Skip to the content
      </button>
      <header>
        <a class="brand" href={link(first)}>
          Artseal
        </a>
        <search class="search">
          <form
            onSubmit={(event) => {
              event.preventDefault();
              const query = String(new FormData(event.currentTarget).get('query')).trim();
              if (query !== '') location.hash = viewOf(query);
            }}
          >
            <label class="hidden" for="query">
              Filing number, order, request id or platform
            </label>
            <input
              id="query"
              name="query"
              type="search"
              placeholder="Number, order, request id or platform"
            />
          </form>
        </search>
        <div class="account">
          <span title={session.tokenId}>{session.caller}</span>
          {!session.can('OPERATE') && <span class="badge wait">read-only</span>}
          <button type="button" onClick={leave}>
            Sign out
          </button>
        </div>
      </header>
      <nav class="views" aria-label="Views">
        <ul>
          {allowed.map(([key, { label }]) => (
            <li key={key}>
              <a href={link(key)} aria-current={key === current ? 'page' : undefined}>
                {label}
              </a>
            </li>
          ))}
        </ul>
        {!session.can('OPERATE') && (
          <p class="quiet">Your token cannot operate: views and actions of operators are not shown.</p>
        )}
      </nav>
      <main id="content" key={place}>
        <Content view={view} shown={view?.show(id, last)} session={session} />
      </main>
      <p id="status" class="hidden" role="status" />
    </>
  );
}

function Content({
  view,
  shown,
  session,
}: {
  view: View | undefined;
  shown: ComponentChildren;
  session: Session;
}) {
  if (view === undefined)
    return (
      <>
        <h1 tabIndex={-1}>Not found</h1>
        <p>The console has no such view.</p>
      </>
    );
  if (session.can(view.scope)) return <>{shown}</>;
  return (
    <>
      <h1 tabIndex={-1}>{view.label}</h1>
      <p>
        This view needs a token with the scope <code>{view.scope.toLowerCase()}</code>, which yours does not
        have.
      </p>
    </>
  );
}

const app = document.getElementById('app');
if (app !== null) render(<App />, app);
