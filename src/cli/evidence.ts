import { createCheckpointFile } from '../evidence/log/checkpoint-file.ts';
import { type Fork, makeFork, planFork } from '../evidence/log/fork.ts';
import { madeUpOrigin } from '../evidence/log/origin.ts';
import { hasEnded, isAhead, mintLogKey } from '../evidence/log/signing-keys.ts';
import type { StoredLink } from '../store/evidence-commands.ts';
import { allOf } from '../store/paging.ts';
import { localActor } from './actor.ts';
import {
  type Action,
  type CommandGroup,
  exitCodes,
  type Terminal,
  UsageError,
  type Words,
} from './command.ts';
import { secondsOf, timestampsOf } from './instant.ts';
import { changeRegistry, withRegistry } from './registry.ts';
import { refuseUnknownToServing } from './sealing.ts';

const noKey = 'the evidence log has no key yet: the first artseal serve makes it';

const vkey: Action = {
  usage: 'evidence vkey [--json]',
  details: [
    'prints the verifier keys that checkpoints are signed with now, the newest first: everybody who checks the log needs them.',
    'Keys that sign later follow, each with the time when it begins. Give them to others by another way than the service itself.',
  ],
  run: (words, terminal) =>
    withRegistry(terminal, async ({ execute }, { timeZone }) => {
      const timestamp = timestampsOf(timeZone);
      const { keys } = await execute({ kind: 'GetLog' });
      if (keys.length === 0) throw new Error(noKey);
      const atS = nowS();
      const live = keys.filter((key) => !hasEnded(key, atS));
      for (const key of live.toSorted(
        (one, other) => Number(isAhead(one, atS)) - Number(isAhead(other, atS)),
      )) {
        const { vkey, addedAtS, signsFromS, endsAtS } = key;
        const line = isAhead(key, atS) ? `${vkey} signs from ${timestamp(signsFromS ?? atS)}` : vkey;
        const told = {
          vkey,
          addedAt: timestamp(addedAtS),
          signsFrom: timestamp(signsFromS ?? addedAtS),
          endsAt: endsAtS === null ? null : timestamp(endsAtS),
        };
        terminal.print(words.has('json') ? JSON.stringify(told) : line);
      }
    }),
};

/** How long the keys before sign on beside a new one. */
const overlapDefault = '30d';
const durationMaxS = 366 * 86_400;

const rotateKey: Action = {
  usage: 'evidence rotate-key [--signs-in DURATION] [--overlap DURATION] [--reason TEXT] [--json]',
  details: [
    'makes a new key, and prints its verifier key. It signs from now on, or after --signs-in (90m, 12h, 7d), so that witnesses can',
    'be given it before. The keys before it go on signing for --overlap, 30d by default (0s if somebody else has the old key);',
    'then their seeds are erased. A running server applies it before the command ends.',
  ],
  run: (words, terminal) => {
    const [signsInS, overlapS] = [
      durationOf(words, 'signs-in', '0s'),
      durationOf(words, 'overlap', overlapDefault),
    ];
    return changeRegistry(terminal, async (registry, { dataDir, timeZone }) => {
      const { execute, keyRing } = registry;
      refuseUnknownToServing(dataDir, registry);
      const by = localActor(words, terminal);
      const { origin } = await execute({ kind: 'GetLog' });
      if (origin === undefined) throw new Error(noKey);
      const key = mintLogKey(origin, keyRing, by.atS);
      const signsFromS = by.atS + signsInS;
      const othersEndAtS = signsFromS + overlapS;
      await execute({
        ...{ kind: 'RotateLogKey', by, key, endsAtS: othersEndAtS },
        signsFromS: signsInS > 0 ? signsFromS : undefined,
      });
      const { vkey } = key;
      const timestamp = timestampsOf(timeZone);
      const [signsFrom, othersEndAt] = [timestamp(signsFromS), timestamp(othersEndAtS)];
      if (words.has('json')) return terminal.print(JSON.stringify({ vkey, signsFrom, othersEndAt }));
      terminal.print(vkey);
      if (signsInS > 0) terminal.print(`It signs from ${signsFrom}: give it to witnesses before.`);
      terminal.print(`Those before sign until ${othersEndAt}.`);
      terminal.print('Tell the new one to all who check the log, by another way than the service itself.');
    });
  },
};

const fork: Action = {
  usage: 'evidence fork [--accept] [--reason TEXT]',
  details: [
    'for a registry that is not what was published of it: restored from a backup, or its log-checkpoint is lost. Tells what is',
    'wrong; with --accept the log goes on under another name, with a new key, and a leaf names the last checkpoint of the old',
    'one. First try to put the right database or file back: whoever checks the log learns of a fork. The server has to be stopped.',
    'Exit code 3 if there is something to be done.',
  ],
  run: async (words, terminal) => {
    const by = localActor(words, terminal);
    let code: number = exitCodes.done;
    await withRegistry(terminal, async ({ store, execute, keyRing }, { dataDir, logOrigin }) => {
      await store.beginServing();
      const file = createCheckpointFile(dataDir);
      const named = { origin: logOrigin, madeUpOrigin: madeUpOrigin(store) };
      const dependencies = { execute, keyRing, file, ...named };
      const plan = await planFork(dependencies);
      if (plan === undefined)
        return terminal.print(
          'what was published of the log and the database agree: there is nothing to fork',
        );
      terminal.print(plan.why);
      const vkey = words.has('accept') ? await makeFork(dependencies, plan, by) : undefined;
      for (const line of described(plan, vkey)) terminal.print(line);
      if (vkey === undefined) code = exitCodes.due;
    });
    return code;
  },
};

const numbersAgain =
  'CAREFUL: forked as it is, this database gives numbers out again that were answered. To leave them out, take an artseal backup\n' +
  'of it first, restore that with --numbers-after into another folder, copy log-checkpoint there, and fork that one.';

function described(
  { previous, origin, keptAs, givesNumbersAgain }: Fork,
  vkey: string | undefined,
): string[] {
  const known = previous
    ? `the last checkpoint of ${previous.origin} that is known has ${previous.size} leaves`
    : 'no checkpoint of the old log is known';
  const last = givesNumbersAgain ? `${known}\n${numbersAgain}` : known;
  if (vkey === undefined)
    return [last, `--accept would begin the log ${origin}, with a new key; nothing was changed`];
  return [
    ...[last, `the log goes on as ${origin}`, vkey],
    ...(keptAs === undefined ? [] : [`the file with the checkpoint is kept as ${keptAs}`]),
    'Tell the new verifier key to all who check the log, by another way than the service itself, and why it was forked.',
  ];
}

/** The seconds that a flag names, or those of `fallback` without it. Throws UsageError. */
function durationOf(words: Words, flag: string, fallback: string): number {
  const text = words.text(flag) ?? fallback;
  const seconds = secondsOf(text);
  if (seconds !== undefined && seconds <= durationMaxS) return seconds;
  throw new UsageError(`takes --${flag} as in 90m, 12h or 30d, of 366d at most, not '${text}'`);
}

const links: Action = {
  usage: 'evidence links FILING_NO [--json]',
  details: [
    'lists the links to evidence of a filing that have not expired, newest first, without what opens them.',
  ],
  run: (words, terminal) =>
    withRegistry(terminal, async ({ execute }, { timeZone }) => {
      const named = { filingNo: words.required('FILING_NO'), owner: undefined, nowS: nowS() };
      for await (const link of allOf((page) => execute({ kind: 'ListLinks', ...named, page })))
        show(link, words, terminal, timestampsOf(timeZone));
    }),
};

const revokeLink: Action = {
  usage: 'evidence revoke-link LINK_ID [--reason TEXT] [--json]',
  details: ['revokes a link to evidence: it opens nothing from then on, also of a running server.'],
  run: (words, terminal) =>
    withRegistry(terminal, async ({ execute }, { timeZone }) => {
      const by = localActor(words, terminal);
      const named = { linkId: words.required('LINK_ID'), filingNo: undefined, owner: undefined };
      show(await execute({ kind: 'RevokeLink', by, ...named }), words, terminal, timestampsOf(timeZone));
    }),
};

function show(
  { createdAtS, expiresAtS, revokedAtS, ...link }: StoredLink,
  words: Words,
  { print }: Terminal,
  timestamp: (atS: number) => string,
): void {
  const createdAt = timestamp(createdAtS);
  const expiresAt = timestamp(expiresAtS);
  const revokedAt = revokedAtS === null ? null : timestamp(revokedAtS);
  if (words.has('json')) {
    print(JSON.stringify({ ...link, createdAt, expiresAt, revokedAt }));
    return;
  }
  const { linkId, filingNo, sequence } = link;
  const end = revokedAt === null ? `expires ${expiresAt}` : `revoked ${revokedAt}`;
  print([linkId, `${filingNo}/${sequence}`, `made ${createdAt}`, end].join('  '));
}

const nowS = (): number => Math.floor(Date.now() / 1000);

/** `artseal evidence` */
export const evidence: CommandGroup = {
  summary: 'tell and change what the evidence log is signed with; list and revoke links to evidence',
  actions: [vkey, rotateKey, fork, links, revokeLink],
  details: [
    'How to run the log: docs/operate/evidence-log.md. If it is not signed: docs/operate/incidents/evidence-log-not-signed.md.',
  ],
};
