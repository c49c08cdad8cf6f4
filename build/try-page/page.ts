import { bytesToHex, randomBytes } from '@noble/hashes/utils.js';
import { type ReasonHelp, reasonHelp } from '../../src/domain/reason-help.ts';
import { byId, element } from '../verify-page/dom.ts';
import { samples } from './samples.ts';
import {
  hashOf,
  type Operation,
  type Parts,
  partNames,
  readPasted,
  signatureOf,
  splitMessage,
} from './signing.ts';

/** The operations of openapi.yaml; the build puts them here. */
declare const OPERATIONS: readonly Operation[];

/** The address of the service, which this page is from. */
const base = location.origin;
/** The feed of events waits for 30 seconds. */
const timeoutMs = 60_000;
/** The page reports a clock that differs more from the server's. */
const clockDifferenceMsMax = 60_000;
const renewalMs = 60_000;
const storedName = 'artseal-credentials';

const input = (id: string): HTMLInputElement => byId(id, HTMLInputElement);
const select = (id: string): HTMLSelectElement => byId(id, HTMLSelectElement);
const [key, secret, remember] = [input('key'), input('secret'), input('remember')];
const [target, timestamp, nonce] = [input('target'), input('timestamp'), input('nonce')];
const automatic = input('automatic');
const [operation, method] = [select('operation'), select('method')];
const [example, language] = [select('example'), select('language')];
const [body, pasted] = [byId('body', HTMLTextAreaElement), byId('pasted', HTMLTextAreaElement)];
const send = byId('send', HTMLButtonElement);
const adopt = byId('adopt', HTMLButtonElement);

const signed = OPERATIONS.filter(({ isSigned }) => isSigned);
const pathNames = new Set(
  signed.flatMap(({ parameters }) => parameters.filter((one) => one.in === 'path').map(({ name }) => name)),
);
/** The newest id in a response for each path parameter. */
const ids = new Map<string, string>();
/** The inputs of the parameters of the chosen operation, with place and name. */
let fields: readonly (readonly [string, string, HTMLInputElement])[] = [];
/** The server's clock minus that of this computer. */
let clockOffsetMs = 0;

function show(id: string, ...content: readonly (string | HTMLElement)[]): void {
  const shown = byId(id, HTMLElement);
  // Screen readers announce what is replaced.
  if (content.length !== 1 || content[0] !== shown.textContent) shown.replaceChildren(...content);
}

function showStatus(id: string, className: string, words: string): void {
  byId(id, HTMLElement).className = className;
  show(id, words);
}

const chosen = (): Operation => signed[operation.selectedIndex] as Operation;

/** Chooses the operation that the address names. */
function followHash(): void {
  const id = location.hash.slice(1);
  const named = OPERATIONS.find((one) => one.id === id);
  const isOpen = named?.isSigned === false;
  show('notice', isOpen ? `${id} needs no signature: send ${named.method} ${base}${named.path}.` : '');
  if (named?.isSigned) operation.value = id;
  showOperation();
}

function showOperation(): void {
  const { parameters, examples } = chosen();
  fields = parameters.map(({ name, in: place, required, example: sample }) => {
    const field = document.createElement('input');
    Object.assign(field, { id: `field-${name}`, required, placeholder: sample, spellcheck: false });
    if (place === 'path') field.value = ids.get(name) ?? sample;
    field.addEventListener('input', showTarget);
    return [place, name, field];
  });
  const labels = parameters.map(({ name, required, description }, at) => {
    const about = element('span', ` ${required ? '' : '(optional) '}${description}`);
    about.className = 'hint';
    return element('label', name, about, fields[at]?.[2] ?? '');
  });
  show('fields', ...labels);
  showStatus('status', '', 'Not sent yet.');
  show('response');
  method.value = chosen().method;
  example.replaceChildren(...examples.map(({ name }) => new Option(name)));
  byId('example-part', HTMLElement).hidden = examples.length < 2;
  showTarget();
  showExample();
}

/** The names and values of the filled-in parameters of a place. */
const valuesIn = (wanted: string): [string, string][] =>
  fields.flatMap(([place, name, { value }]) => (place === wanted && value ? [[name, value.trim()]] : []));

function showTarget(): void {
  const path = valuesIn('path').reduce(
    (text, [name, value]) => text.replace(`{${name}}`, () => encodeURIComponent(value)),
    chosen().path,
  );
  const query = valuesIn('query').map(([name, value]) => `${name}=${encodeURIComponent(value)}`);
  target.value = query.length === 0 ? path : `${path}?${query.join('&')}`;
}

function showExample(): void {
  const { value } = chosen().examples[Math.max(0, example.selectedIndex)] ?? {};
  const members = Object.entries(value ?? {}).map(([name, sample]) => [name, ids.get(name) ?? sample]);
  body.value = value === undefined ? '' : JSON.stringify(Object.fromEntries(members), null, 2);
  body.rows = body.value.split('\n').length + 1;
  renew();
}

/** The request as the page shows it. `credentials` are its four headers. */
function currentRequest() {
  const type = { [body.value === '' ? 'Accept' : 'Content-Type']: 'application/json' };
  const headers = { ...type, ...Object.fromEntries(valuesIn('header')) };
  const call = { base, method: method.value, target: target.value, body: body.value, headers };
  const [timeS, once, apiSecret] = [timestamp.value.trim(), nonce.value.trim(), secret.value.trim()];
  const parts: Parts = [call.method, call.target, hashOf(call.body), timeS, once];
  const credentials = {
    'X-Api-Key': key.value.trim() || '(enter the API key)',
    'X-Timestamp': timeS,
    'X-Nonce': once,
    'X-Signature': apiSecret === '' ? '(enter the API secret)' : signatureOf(parts, apiSecret),
  };
  return { call, parts, credentials };
}

/** Shows the signature of the request as it is now. */
function update(): void {
  const { call, parts, credentials } = currentRequest();
  show('parts', ...terms(parts.map((part, at) => [partNames[at] ?? '', part])));
  show('message', parts.join(''));
  show('signature', credentials['X-Signature']);
  const headers = Object.entries({ ...call.headers, ...credentials });
  show('headers', headers.map(([name, value]) => `${name}: ${value}`).join('\n'));
  show('code', samples[language.value]?.(call, credentials) ?? '');
  const validUntil = new Date((Number(parts[3]) + 300) * 1_000 - clockOffsetMs).toLocaleTimeString();
  show(
    'code-note',
    language.value === 'curl' ? `Valid once, until ${validUntil}.` : 'Signs each time it runs.',
  );
  noteCredentials();
  compare();
}

const terms = (entries: readonly (readonly [string, string | HTMLElement])[]): HTMLElement[] =>
  entries.flatMap(([name, value]) => [element('dt', name), element('dd', value)]);

const isLive = (): boolean => key.value.trim().startsWith('ak_live_');

function noteCredentials(): void {
  const fault = /^\s*sk_/.test(key.value) ? 'This is a secret. An API key begins with ak_.' : '';
  const warning = isLive()
    ? 'A live key: calls that write move real money and use up filing numbers.'
    : fault;
  key.setCustomValidity(fault);
  showStatus('credentials-note', 'warning', warning);
  byId('credentials-note', HTMLElement).hidden = warning === '';
}

/** Takes a new timestamp and nonce, unless the user chose them. */
function renew(): void {
  if (automatic.checked) {
    timestamp.value = String(Math.floor((Date.now() + clockOffsetMs) / 1_000));
    nonce.value = bytesToHex(randomBytes(16));
  }
  update();
}

function learnClock(headers: Headers): void {
  const serverMs = Date.parse(headers.get('Date') ?? '');
  if (Number.isNaN(serverMs)) return;
  clockOffsetMs = serverMs - Date.now();
  const difference = `${Math.round(Math.abs(clockOffsetMs) / 1_000)} seconds ${clockOffsetMs > 0 ? 'slow' : 'fast'}`;
  const isWrong = Math.abs(clockOffsetMs) > clockDifferenceMsMax;
  const words = `This computer's clock is ${difference}. This page corrects that; your own code has to, too.`;
  showStatus('clock', isWrong ? 'warning' : 'hint', isWrong ? words : '');
}

async function sendRequest(): Promise<void> {
  renew();
  const { call, credentials, parts } = currentRequest();
  const { method: verb, target: path } = call;
  const url = new URL(base + path);
  show('response');
  if (url.pathname + url.search !== path || (verb === 'GET' && call.body !== '')) {
    const words = 'Browsers cannot send this request exactly as it is signed. Use the curl command.';
    return showStatus('status', 'bad', words);
  }
  if (isLive() && verb !== 'GET' && !confirm(`Send ${verb} ${path} to a LIVE system?`)) return;
  send.disabled = true;
  showStatus('status', '', 'Sending…');
  try {
    const response = await fetch(url, {
      method: verb,
      headers: { ...call.headers, ...credentials },
      body: call.body || null,
      ...{ cache: 'no-store', credentials: 'omit', signal: AbortSignal.timeout(timeoutMs) },
    });
    learnClock(response.headers);
    showResponse(response, await response.text(), parts);
  } catch (error) {
    showStatus('status', 'bad', `No response: ${error}`);
  }
  send.disabled = false;
  // The nonce is used up.
  renew();
}

function showResponse({ ok, status, headers }: Response, text: string, parts: Parts): void {
  // biome-ignore lint/suspicious/noExplicitAny: only shown, and searched for ids.
  let json: any;
  try {
    json = JSON.parse(text);
  } catch {
    // Shown as it is.
  }
  showStatus('status', ok ? 'good' : 'bad', ok ? `✓ ${status}` : `✗ ${status} ${json?.code ?? ''}`);
  const shown = element('pre', json === undefined ? text : JSON.stringify(json, null, 2));
  const lines = Array.from(headers, ([name, value]) => `${name}: ${value}\n`);
  const details = element('details', element('summary', 'Headers of the response'), element('pre', ...lines));
  show('response', ...hintsOf(json?.code, text, parts), shown, copyButton(shown, text), details);
  if (ok) keepIds(json);
}

/** What an error means and what to do, in paragraphs. */
function hintsOf(code: string | undefined, response: string, parts: Parts): HTMLElement[] {
  const help = new Map<unknown, ReasonHelp>(Object.entries(reasonHelp)).get(code);
  if (help === undefined) return [];
  const link = element('a', `More about ${code}`);
  link.setAttribute('href', `errors#${code}`);
  const words = `${help.condition} ${help.action} `.split('`');
  const general = element('p', ...words.map((text, at) => (at % 2 ? element('code', text) : text)), link);
  if (code !== 'SIGNATURE_INVALID') return [general];
  const isSame = readPasted(response) === parts.join('');
  const cause = isSame
    ? 'The server expected the same message that this page signed. So the secret is wrong, or the key is not valid here.'
    : 'The request changed between this page and the server, for example in a proxy.';
  return [element('p', element('b', cause)), general];
}

/** Keeps the ids in a response for the next calls; of a list, those of its first item. */
function keepIds(value: object | null): void {
  for (const [name, member] of Object.entries(value ?? {}).reverse()) {
    if (pathNames.has(name)) ids.set(name, String(member));
    else if (typeof member === 'object') keepIds(member);
  }
}

/** Compares what was pasted with this page's message, or with its signature. */
function compare(): void {
  const { parts, credentials } = currentRequest();
  const text = readPasted(pasted.value);
  const theirs = splitMessage(text, Date.now() / 1_000);
  adopt.hidden = theirs === undefined;
  const expected = /^[0-9a-f]{64}$/i.test(text) ? credentials['X-Signature'] : parts.join('');
  const pairs = theirs === undefined ? [['Yours', text, expected] as const] : pairsOf(theirs, parts);
  const different = pairs.filter(([, one, other]) => one !== other && text !== '');
  const isOfBody = different.length === 1 && different[0]?.[0] === partNames[2];
  const cause = isOfBody ? ': the body has other bytes, such as white space or another order of members' : '';
  const words = different.length > 0 ? `✗ Different from the mark on${cause}.` : '✓ The same';
  showStatus('comparison', different.length > 0 ? 'bad' : 'good', text === '' ? '' : words);
  show('differences', ...terms(different.map(([name, one, other]) => [name, marked(one, other)])));
}

const pairsOf = (theirs: Parts, own: Parts) =>
  partNames.map((name, at) => [name, theirs[at] ?? '', own[at] ?? ''] as const);

/** A text with a mark from where it differs from another. */
function marked(text: string, other: string): HTMLElement {
  let at = 0;
  while (at < text.length && text[at] === other[at]) at += 1;
  const rest = element('mark', text.slice(at) || '(ends too early)');
  return element('span', text.slice(0, at), rest, element('br'), `here: ${other}`);
}

function adoptPasted(): void {
  const parts = splitMessage(readPasted(pasted.value), Date.now() / 1_000);
  if (parts === undefined) return;
  automatic.checked = false;
  [method.value, target.value, , timestamp.value, nonce.value] = parts;
  update();
}

/** A button that copies a text. Over plain HTTP there is no clipboard: it selects the element instead. */
function copyButton(shown: HTMLElement, text?: string): HTMLElement {
  const button = element('button', 'Copy');
  button.setAttribute('type', 'button');
  shown.tabIndex = 0;
  button.addEventListener('click', () => {
    getSelection()?.selectAllChildren(shown);
    void navigator.clipboard?.writeText(text ?? shown.textContent ?? '');
  });
  return button;
}

/** Takes both credentials out of a pasted sandbox-credentials.json, and keeps them if the user wants that. */
function takeCredentials(): void {
  const pair = /"apiKey":\s*"([^"]+)",\s*"apiSecret":\s*"([^"]+)"/.exec(key.value + secret.value);
  if (pair !== null) [, key.value = '', secret.value = ''] = pair;
  try {
    if (remember.checked) sessionStorage.setItem(storedName, JSON.stringify([key.value, secret.value]));
    else sessionStorage.removeItem(storedName);
  } catch {
    // The browser forbids it.
    remember.checked = false;
  }
}

/** Fills in the credentials that the tab keeps. */
function restoreCredentials(): void {
  try {
    const stored = sessionStorage.getItem(storedName);
    if (stored !== null) [key.value, secret.value, remember.checked] = [...JSON.parse(stored), true];
  } catch {
    // The browser forbids it, or something else is stored.
  }
}

for (const tag of new Set(signed.map((one) => one.tag))) {
  const group = document.createElement('optgroup');
  group.label = tag;
  group.append(...signed.filter((one) => one.tag === tag).map(({ id, summary }) => new Option(summary, id)));
  operation.append(group);
}
method.append(...Array.from(new Set(signed.map((one) => one.method)), (name) => new Option(name)));
language.append(...Object.keys(samples).map((name) => new Option(name)));
for (const id of ['message', 'signature', 'headers', 'code']) {
  const shown = byId(id, HTMLElement);
  shown.after(copyButton(shown));
}
restoreCredentials();
for (const field of [key, secret, remember]) field.addEventListener('input', takeCredentials);
for (const field of [timestamp, nonce]) {
  field.addEventListener('input', () => {
    automatic.checked = false;
  });
}
operation.addEventListener('change', () => {
  history.replaceState(null, '', `#${operation.value}`);
  followHash();
});
example.addEventListener('change', showExample);
automatic.addEventListener('change', renew);
adopt.addEventListener('click', adoptPasted);
// A command that was copied before may have used up the nonce.
document.addEventListener('input', (event) => (event.target === pasted ? update() : renew()));
addEventListener('hashchange', followHash);
byId('form', HTMLFormElement).addEventListener('submit', (event) => {
  event.preventDefault();
  void sendRequest();
});
// Not while the user selects a text that would change.
setInterval(() => getSelection()?.isCollapsed !== false && renew(), renewalMs);
followHash();
fetch(`${base}/healthz`, { method: 'HEAD' }).then(
  ({ headers }) => {
    learnClock(headers);
    renew();
  },
  (error) => showStatus('status', 'bad', `The server cannot be reached: ${error}`),
);
