import { spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Readable, Writable } from 'node:stream';
import type { TestContext } from 'node:test';
import { eventually } from './eventually.ts';
import { installed } from './installed.ts';
import { temporaryFolder } from './temporary-folder.ts';

/** A page in a browser without a window. */
export interface BrowserPage {
  /** The addresses that were asked for since the page was opened, its own included. */
  readonly requests: readonly string[];
  /** What the page wrote to the console, what it threw, and what its policy kept it from. */
  readonly complaints: readonly string[];
  /** Sends a command of the DevTools protocol to the page; its answer. */
  send(method: string, parameters?: object): Promise<Json>;
  /** The value of an expression in the page. */
  value<T>(expression: string): Promise<T>;
  /** Polls an expression until it is true in the page. */
  until(expression: string): Promise<void>;
  /** Resolves to the parameters of the next event of that name. */
  next(event: string): Promise<Json>;
}

/** Chromium, which opens pages. */
export interface Browser {
  open(url: string): Promise<BrowserPage>;
}

// biome-ignore lint/suspicious/noExplicitAny: the protocol is large, and what is read of it is checked by the test.
type Json = any;
type Listener = (message: { readonly method: string; readonly params: Json }) => void;

/** How long a page may take before the test that waits for it fails. */
const timeoutMs = 60_000;

/**
 * Starts Debian's Chromium with a profile of its own, and speaks the DevTools protocol with it over a pipe. It ends with
 * the test, and with this process in any case, since it reads the end of the pipe.
 */
export async function startChromium(
  t: Pick<TestContext, 'after'>,
  ...flags: readonly string[]
): Promise<Browser> {
  const child = spawn(
    installed('chromium') ?? 'chromium',
    [
      ...['--headless', '--remote-debugging-pipe', `--user-data-dir=${temporaryFolder(t)}`],
      // Its sandbox refuses root, as which the tests may run; what it opens here is the project's own.
      ...['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'],
      ...['--no-first-run', '--disable-background-networking', '--disable-component-update'],
      ...flags,
      'about:blank',
    ],
    { stdio: ['ignore', 'ignore', 'pipe', 'pipe', 'pipe'] },
  );
  let errors = '';
  child.stderr?.on('data', (chunk) => {
    errors += chunk;
  });
  const exited = once(child, 'exit');
  t.after(async () => {
    child.kill('SIGKILL');
    await exited;
  });
  const connection = connect(child.stdio[3] as Writable, child.stdio[4] as Readable);
  exited.then(() => connection.fail(new Error(`Chromium ended: ${errors}`))).catch(() => {});

  return {
    open: async (url) => {
      const { targetId } = await connection.send('Target.createTarget', { url: 'about:blank' });
      const { sessionId } = await connection.send('Target.attachToTarget', { targetId, flatten: true });
      const page = pageOf(connection, sessionId);
      for (const domain of ['Page', 'Network', 'Runtime', 'Log', 'DOM']) await page.send(`${domain}.enable`);
      const loaded = page.next('Page.loadEventFired');
      const { errorText } = await page.send('Page.navigate', { url });
      if (errorText !== undefined) throw new Error(`${url}: ${errorText}`);
      await loaded;
      return page;
    },
  };
}

type Connection = ReturnType<typeof connect>;

/** Commands, responses and events as JSON, each followed by a zero byte. */
function connect(commands: Writable, answers: Readable) {
  const waiting = new Map<number, PromiseWithResolvers<Json>>();
  const listeners = new Map<string, Set<Listener>>();
  let last = 0;
  let failure: Error | undefined;
  let rest = '';
  answers.setEncoding('utf8').on('data', (chunk: string) => {
    const messages = `${rest}${chunk}`.split('\0');
    rest = messages.pop() ?? '';
    for (const text of messages) take(JSON.parse(text));
  });
  commands.on('error', () => {});

  function take({ id, result, error, sessionId, ...event }: Json): void {
    if (id === undefined) {
      for (const listener of listeners.get(sessionId) ?? []) listener(event);
      return;
    }
    const answer = waiting.get(id);
    waiting.delete(id);
    if (error === undefined) answer?.resolve(result);
    else answer?.reject(new Error(error.message));
  }

  return {
    send(method: string, params: object = {}, sessionId?: string): Promise<Json> {
      last += 1;
      if (failure !== undefined) return Promise.reject(failure);
      const answer = Promise.withResolvers<Json>();
      waiting.set(last, answer);
      commands.write(`${JSON.stringify({ id: last, method, params, sessionId })}\0`);
      return answer.promise;
    },
    listen(sessionId: string, listener: Listener): () => void {
      const all = listeners.get(sessionId) ?? new Set();
      listeners.set(sessionId, all.add(listener));
      return () => all.delete(listener);
    },
    fail(error: Error): void {
      failure = error;
      for (const { reject } of waiting.values()) reject(error);
    },
  };
}

function pageOf(connection: Connection, sessionId: string): BrowserPage {
  const requests: string[] = [];
  const complaints: string[] = [];
  connection.listen(sessionId, ({ method, params }) => {
    if (method === 'Network.requestWillBeSent') requests.push(params.request.url);
    if (method === 'Runtime.exceptionThrown') complaints.push(params.exceptionDetails.text);
    if (method === 'Runtime.consoleAPICalled') complaints.push(JSON.stringify(params.args));
    if (method === 'Log.entryAdded') complaints.push(params.entry.text);
  });
  const send = (method: string, params?: object) => connection.send(method, params, sessionId);
  async function value<T>(expression: string): Promise<T> {
    const { result, exceptionDetails } = await send('Runtime.evaluate', {
      ...{ expression, awaitPromise: true, returnByValue: true },
    });
    if (exceptionDetails !== undefined)
      throw new Error(`${expression}: ${exceptionDetails.exception?.description}`);
    return result.value;
  }
  return {
    requests,
    complaints,
    send,
    value,
    until: async (expression) => {
      await eventually(expression, timeoutMs, () => value<boolean>(expression));
    },
    next: (event) =>
      new Promise((resolve) => {
        const stop = connection.listen(sessionId, ({ method, params }) => {
          if (method !== event) return;
          stop();
          resolve(params);
        });
      }),
  };
}
