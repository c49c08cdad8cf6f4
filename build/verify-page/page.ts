import { type Check, checkBundle, type Outcome } from '../../src/evidence/verifier/outcome.ts';
import { byId, element } from './dom.ts';
import { bundleInLink } from './link.ts';
import { type Language, pageWords } from './words.ts';

/** Largest file that the page reads, in bytes. A bundle has some thousands; a huge file would freeze the browser. */
const fileBytesMax = 1_000_000;

/** The bundle that was chosen. */
interface Chosen {
  readonly name: string;
  readonly bytes: Uint8Array;
}
let chosen: Chosen | undefined;
/** Whether the key comes from a QR code, whose sender may have another one than the log. */
let isKeyFromCode = false;

const form = byId('form', HTMLFormElement);
const bundleName = byId('bundle-name', HTMLElement);
const key = byId('key', HTMLTextAreaElement);
const pin = byId('pin', HTMLTextAreaElement);
const verdict = byId('verdict', HTMLElement);
const result = byId('result', HTMLElement);
const languageButton = byId('language', HTMLButtonElement);
let language: Language = navigator.language.startsWith('zh') ? 'zh' : 'en';
const words = () => pageWords[language];

// A copy on disk has no service to lead back to.
byId('service', HTMLElement).hidden = location.protocol === 'file:';
onFile('bundle', takeBundle);
onFile('key-file', takeKey);
onFile('pin-file', takePin);
// Never show a result beside inputs that it was not computed from.
for (const input of [key, pin]) input.addEventListener('input', clear);
key.addEventListener('input', () => {
  isKeyFromCode = false;
});
speak();
languageButton.addEventListener('click', () => {
  language = language === 'zh' ? 'en' : 'zh';
  const isShown = !result.hidden;
  speak();
  if (isShown) show();
  else clear();
});
void takeLink();
addEventListener('hashchange', () => void takeLink());
form.addEventListener('submit', (event) => {
  event.preventDefault();
  show();
});
// Leave dropped text to the field under it.
document.addEventListener('dragover', (event) => {
  if (event.dataTransfer?.types.includes('Files')) event.preventDefault();
});
document.addEventListener('drop', (event) => {
  const files = Array.from(event.dataTransfer?.files ?? []);
  if (files.length === 0) return;
  event.preventDefault();
  void take(files, takeAny);
});

/** Shows the page in the language. */
function speak(): void {
  document.documentElement.lang = language;
  languageButton.lang = language === 'zh' ? 'en' : 'zh';
  languageButton.textContent = language === 'zh' ? 'English' : '中文';
  bundleName.textContent =
    chosen === undefined ? words().noBundle : words().chosen(chosen.name, chosen.bytes.length);
}

/** Checks the bundle in the address, if there is one: that of a QR code. */
async function takeLink(): Promise<void> {
  if (location.hash === '') return;
  try {
    const linked = await bundleInLink(location.hash, fileBytesMax);
    if (linked === undefined) return;
    takeBundle({ name: words().code, bytes: linked.bytes });
    key.value = linked.key;
    isKeyFromCode = true;
    byId('from-code', HTMLElement).hidden = false;
    show();
  } catch {
    complain(words().brokenCode);
  }
}

/** Handles a file and its content. */
type Taker = (file: Chosen) => void;

/** Reads files and hands each to the taker, then checks the bundle if bundle and key are there. */
async function take(files: readonly File[], taker: Taker): Promise<void> {
  clear();
  const hadKey = key.value.trim() !== '';
  try {
    for (const file of files) taker(await read(file));
  } catch (error) {
    // Do not check the bundle that was chosen before.
    chosen = undefined;
    bundleName.textContent = words().noBundle;
    complain(error instanceof Error ? error.message : String(error));
    return;
  }
  if (chosen !== undefined && (hadKey || key.value.trim() !== '')) show();
}

async function read(file: File): Promise<Chosen> {
  const { name, size } = file;
  if (size > fileBytesMax) {
    throw new Error(words().tooLarge(name, size, fileBytesMax));
  }
  return { name, bytes: new Uint8Array(await file.arrayBuffer()) };
}

function onFile(id: string, taker: Taker): void {
  const input = byId(id, HTMLInputElement);
  input.addEventListener('change', () => {
    const files = Array.from(input.files ?? []);
    // So that the same file can be chosen again after a change.
    input.value = '';
    void take(files, taker);
  });
}

function takeBundle(file: Chosen): void {
  chosen = file;
  // The key of a QR code is for the bundle in it. A file needs a key of the reader.
  if (isKeyFromCode) key.value = '';
  isKeyFromCode = false;
  byId('from-code', HTMLElement).hidden = true;
  bundleName.textContent = words().chosen(file.name, file.bytes.length);
}

function takeKey({ bytes }: Chosen): void {
  key.value = textOf(bytes);
  isKeyFromCode = false;
}

function takePin({ bytes }: Chosen): void {
  pin.value = textOf(bytes);
}

/** Detects the kind of a dropped file: keys are lines with two plus signs, a checkpoint has signatures. */
function takeAny(file: Chosen): void {
  const text = textOf(file.bytes);
  if (/^[^\s+]+\+[0-9a-f]{8}\+\S+\s*$/m.test(text) && !text.includes('\n\n')) takeKey(file);
  else if (!text.startsWith('{') && text.includes('\n\n\u2014 ')) takePin(file);
  else takeBundle(file);
}

const textOf = (bytes: Uint8Array): string => new TextDecoder().decode(bytes);

/** Checks the chosen bundle, or says which input is missing. */
function show(): void {
  clear();
  if (chosen === undefined) complain(words().bundleMissing);
  else if (key.value.trim() === '') complain(words().keyMissing);
  else showOutcome(checkBundle(chosen.bytes, key.value, pin.value, language));
}

function showOutcome(outcome: Outcome): void {
  verdict.className = outcome.isProven ? 'good' : 'bad';
  verdict.textContent = outcome.verdict;
  result.append(...rendered(outcome));
  result.hidden = false;
}

function clear(): void {
  verdict.textContent = '';
  verdict.className = '';
  result.replaceChildren();
  result.hidden = true;
}

function complain(words: string): void {
  clear();
  verdict.textContent = words;
}

function rendered({ isProven, proven, notProven, checks, record, fields }: Outcome): HTMLElement[] {
  return [
    ...(isProven ? [element('h2', words().isProven), list(proven)] : []),
    ...(checks.length === 0 ? [] : [element('h2', words().checks), checkList(checks)]),
    ...(isProven ? [element('h2', words().isNotProven), list(notProven)] : []),
    ...(fields.length === 0
      ? []
      : [
          element('h2', isProven ? words().record : words().unproven),
          element('dl', ...fields.flatMap(([name, value]) => [element('dt', name), element('dd', value)])),
        ]),
    ...(record === undefined
      ? []
      : [element('details', element('summary', words().exactRecord), element('pre', record))]),
  ];
}

const list = (sentences: readonly string[]): HTMLElement =>
  element('ul', ...sentences.map((sentence) => element('li', sentence)));

function checkList(checks: readonly Check[]): HTMLElement {
  const items = checks.map(({ state, name, words: why }) => {
    const item = element('li', element('b', words().marks[state]), ` \u00b7 ${name}: ${why}`);
    item.className = { passed: 'good', failed: 'bad', open: '' }[state];
    return item;
  });
  const checkItems = element('ol', ...items);
  checkItems.className = 'checks';
  return checkItems;
}
