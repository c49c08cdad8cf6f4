import {
  type AuditReport,
  auditLog,
  type ToldAct,
  VerificationFailure,
  type VerifierKey,
} from '../verifier/index.ts';
import { readState, stateFileOf, writeState } from './audit-state.ts';
import type { Action, CommandGroup, Terminal, Words } from './command.ts';
import { readPin, writePin } from './pin-file.ts';
import { openPublished } from './published.ts';
import { instant, readKeys, tellFailure, verdictCodesHelp } from './verdict.ts';

/** How often progress is shown, in milliseconds: to somebody who watches, and else as a line each. */
const showEveryMs = 200;
const tellEveryMs = 10_000;

/** Acts of each sort that are told one by one; with --json all of them are. */
const actsTold = 50;

/** What lets times go back, numbers be missing, or records be in the log whose time nobody can check: told before all others. */
const allowances: readonly string[] = ['LOG_BEGUN', 'LOG_FORKED', 'CLOCK_ACCEPTED', 'NUMBERS_SKIPPED'];

const audit: Action = {
  usage: 'log audit URL --key VKEY... [--pin FILE] [--json]',
  details: [
    'URL is the address that the log is published under, such as https://registry.example/log, or a folder with a copy.',
    '--key is a verifier key of the log, got elsewhere; several are given by several --key, or a line each.',
    'Fetches checkpoint, leaves and tiles, and recomputes the tree; no data folder and no settings are read.',
    'Of each year the filing numbers have to be without a gap that no leaf explains, and none may be there twice; what',
    'follows a filing is numbered without gaps, and times never go back, but where the log itself says that they may.',
    '--pin names a file that keeps the newest checkpoint that was seen, and is made if it is not there: what contradicts',
    'it is found. FILE.audit beside it keeps how far the audit got: a later one, or one that was interrupted, goes on there.',
    ...verdictCodesHelp,
    'Here 4 says that leaves and tiles do not belong together, 7 that the log contradicts its signature, itself or the pin.',
  ],
  run: async (words, terminal) => {
    const keys = readKeys(words.texts('key'));
    try {
      tell(await auditFrom(words, keys, terminal), words, terminal);
    } catch (error) {
      if (error instanceof VerificationFailure) return tellFailure(error, words.has('json'), terminal);
      throw error;
    } finally {
      terminal.showProgress?.('');
    }
    return undefined;
  },
};

/** `artseal log` */
export const log: CommandGroup = {
  summary: 'check all that an evidence log has published: its tree, its numbers, its times',
  actions: [audit],
  details: [],
};

async function auditFrom(
  words: Words,
  keys: readonly VerifierKey[],
  terminal: Terminal,
): Promise<AuditReport> {
  const log = openPublished(words.required('URL'), 'URL');
  const pinFile = words.text('pin');
  const pin = pinFile === undefined ? undefined : await readPin(pinFile, keys);
  const stateFile = pinFile && stateFileOf(pinFile);
  const report = await auditLog(log, {
    ...{ keys, pin, progress: createProgress(terminal) },
    state: stateFile === undefined ? undefined : readState(stateFile),
    keep: (state) => {
      if (stateFile !== undefined) writeState(stateFile, state);
    },
  });
  const isNewer = pin === undefined || report.checkpoint.size > pin.size;
  if (pinFile !== undefined && isNewer) writePin(pinFile, report.checkpoint);
  return report;
}

/** Shows how far the audit is to whoever watches, and else tells it now and then. */
function createProgress({ showProgress, printError }: Terminal): (done: number, total: number) => void {
  let toldAtMs = performance.now();
  return (done, total) => {
    const atMs = performance.now();
    if (atMs - toldAtMs < (showProgress === undefined ? tellEveryMs : showEveryMs)) return;
    toldAtMs = atMs;
    (showProgress ?? printError)(`${done} of ${total} leaves (${Math.floor((100 * done) / total)} %)`);
  };
}

function tell({ checkpoint, signers, from, contents }: AuditReport, words: Words, { print }: Terminal): void {
  const { transfers, years, told, acts, newestS } = contents;
  const numbers = Array.from(years, ([year, { filings, last }]) => ({ year, filings, last }))
    .filter(({ filings }) => filings > 0)
    .toSorted((one, other) => one.year - other.year);
  const newest = newestS === undefined ? undefined : instant(newestS);
  const signedBy = signers.map(({ vkey }) => vkey);
  if (words.has('json')) {
    const { origin, size } = checkpoint;
    const actsOfLog = told.map(({ index, act, timeS, detail }) => ({
      ...{ leaf: index, kind: act, time: instant(timeS), detail: JSON.parse(detail) },
    }));
    const all = {
      verified: true,
      origin,
      size,
      signedBy,
      from,
      years: numbers,
      transfers,
      newest,
      acts: actsOfLog,
    };
    print(JSON.stringify(all));
    return;
  }
  print(`VERIFIED: the ${checkpoint.size} leaves of the log ${checkpoint.origin} are what it signed`);
  if (from > 0) print(`(those before leaf ${from} by an earlier audit)`);
  for (const vkey of signedBy) print(`signed by ${vkey}`);
  for (const { year, filings, last } of numbers) {
    print(`${year}: ${filings} filings, to number ${last}, ${last - filings} numbers left out`);
  }
  print(
    `${transfers} records behind filings, ${acts} acts of the log${newest ? `, the newest leaf of ${newest}` : ''}`,
  );
  if (acts > 0) print(`acts: ${countsOf(told)}`);
  const isAllowance = ({ act }: ToldAct) => allowances.includes(act);
  const [allowing, others] = [told.filter(isAllowance), told.filter((act) => !isAllowance(act))];
  for (const some of [allowing, others]) {
    if (some.length > actsTold) print(`(the newest ${actsTold} of ${some.length}; --json has all of them)`);
    for (const { index, act, timeS, detail } of some.slice(-actsTold)) {
      print(`  leaf ${index}, ${instant(timeS)}: ${act} ${detail}`);
    }
  }
}

/** How many there are of each kind. */
function countsOf(told: readonly ToldAct[]): string {
  const kinds = Map.groupBy(told, ({ act }) => act);
  return Array.from(kinds, ([kind, { length }]) => `${length} ${kind}`).join(', ');
}
