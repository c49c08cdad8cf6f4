import { resolve } from 'node:path';
import { AdminService } from '../../gen/artseal/v1/admin_pb.ts';
import { type EvidenceLink, EvidenceService } from '../../gen/artseal/v1/evidence_pb.ts';
import { MaintenanceService } from '../../gen/artseal/v1/maintenance_pb.ts';
import { type Config, readConfig } from '../config/config.ts';
import { type Fork, makeFork, planFork } from '../evidence/log/fork.ts';
import { createCheckpointFile, madeUpOrigin } from '../evidence/log/publication.ts';
import { replaceFile } from '../lib/replace-file.ts';
import { openRegistry } from '../operations/registry.ts';
import { type Action, type Command, type CommandGroup, exitCodes, readDuration } from './command.ts';
import { localActor } from './connection.ts';
import { type CallSession, calls, present, warnOfUnknown } from './session.ts';

const announce =
  'Give the new verifier key to everybody who checks the log, by another channel than the service';

const vkey: Action = {
  usage: 'evidence vkey [--json]',
  details: [
    'Prints the verifier keys that sign checkpoints now, the newest first, then keys that sign later, with their start.',
    'Everybody who checks the log needs them. Publish them by another channel than the service.',
  ],
  ...calls(async ({ client, show }) => {
    const { keys } = await client(MaintenanceService).listLogKeys({});
    if (keys.length === 0)
      throw new Error('the evidence log has no key yet: the first artseal serve creates it');
    for (const { vkey, addedAt, signsFrom, endsAt, isSigning } of keys)
      show(
        { vkey, addedAt, signsFrom, endsAt: endsAt || null },
        isSigning ? vkey : `${vkey} signs from ${signsFrom}`,
      );
  }),
};

/** The longest --signs-in and --overlap. */
const longest = '366d';

const rotateKey: Action = {
  usage: 'evidence rotate-key [--signs-in DURATION] [--overlap DURATION] [--reason TEXT] [--json]',
  details: [
    'Creates a key and prints its verifier key. It signs at once, or after --signs-in (90m, 12h, 7d), so that witnesses can get',
    'it before. The earlier keys sign for another --overlap, by default 30d (0s if an old key has leaked). Then their seeds are',
    'erased. A running server uses the new key when the command returns.',
  ],
  ...calls(async ({ client, words, reason, show }) => {
    const signsInSeconds = readDuration(words, 'signs-in', longest) ?? 0;
    const overlapSeconds = readDuration(words, 'overlap', longest);
    const terms = { signsInSeconds, ...(overlapSeconds !== undefined && { overlapSeconds }), reason };
    const response = await client(MaintenanceService).rotateLogKey(terms);
    const { vkey, signsFrom } = present(response.key);
    const { othersEndAt } = response;
    const start = `The new key signs from ${signsFrom}: give it to witnesses before.`;
    show(
      { vkey, signsFrom, othersEndAt },
      ...[vkey, ...(signsInSeconds > 0 ? [start] : [])],
      `The earlier keys sign until ${othersEndAt}.`,
      `${announce}.`,
    );
  }),
};

const fork: Action = {
  usage: 'evidence fork [--accept] [--reason TEXT] [--json]',
  details: [
    'Repairs a registry that contradicts its published log, for example after a restore or if log-checkpoint is lost. Without',
    '--accept it only says what is wrong. With --accept the log continues under another name with a new key, and a leaf names the',
    'last checkpoint of the old log. First try to put the right database or file back: everybody who checks the log sees a fork.',
    'Stop the server first: the command opens the data folder itself, and takes no --url.',
    'Exit code 3 if there is something to do.',
  ],
  run: async (words, terminal) => {
    warnOfUnknown(terminal);
    const config = readConfig(terminal.env);
    const by = localActor(terminal.env, words.text('reason'));
    const { store, execute, keyRing } = await openRegistry(config, 'EXISTING');
    try {
      const file = createCheckpointFile(config.dataDir);
      const named = { origin: config.logOrigin, madeUpOrigin: madeUpOrigin(store) };
      const dependencies = { execute, keyRing, file, ...named, isShared: config.database !== undefined };
      const plan = await planFork(dependencies);
      if (plan === undefined) {
        const sound = 'the database agrees with the published log: there is nothing to fork';
        terminal.show({ result: 'AGREES' }, sound);
        return exitCodes.done;
      }
      const vkey = words.has('accept') ? await makeFork(dependencies, plan, by) : undefined;
      terminal.show(forkShown(plan, vkey), plan.why, ...described(plan, vkey, config));
      return vkey === undefined ? exitCodes.due : exitCodes.done;
    } finally {
      await store.close();
    }
  },
};

const numbersAgain = 'CAREFUL: after this fork the database gives out numbers a second time.';
const skipNumbers =
  'To skip them, take an artseal backup first, restore it with --numbers-after into another folder, copy log-checkpoint there,\n' +
  'and fork that one.';

const skipNumbersOnPostgres = 'To skip them, run artseal database restored first.';

const forkShown = ({ previous, ...plan }: Fork, vkey: string | undefined) => ({
  result: vkey === undefined ? 'PLANNED' : 'FORKED',
  ...plan,
  previous: previous && { origin: previous.origin, size: previous.size },
  vkey,
});

function described(
  { previous, origin, keptAs, givesNumbersAgain }: Fork,
  vkey: string | undefined,
  { database }: Config,
): string[] {
  const last = previous
    ? `the last known checkpoint of ${previous.origin} has ${previous.size} leaves`
    : 'no checkpoint of the old log is known';
  const careful = [numbersAgain, database === undefined ? skipNumbers : skipNumbersOnPostgres];
  const known = givesNumbersAgain ? [last, ...careful] : [last];
  if (vkey === undefined)
    return [...known, `nothing was changed: --accept begins the log ${origin} with a new key`];
  return [
    ...[...known, `the log continues as ${origin}`, vkey],
    ...(keptAs === undefined ? [] : [`the old checkpoint file is kept as ${keptAs}`]),
    `${announce}, with the reason of the fork.`,
  ];
}

const links: Action = {
  usage: 'evidence links FILING_NO [--json]',
  details: ['Lists the unexpired links to the evidence of a filing, the newest first, without their tokens.'],
  ...calls(({ client, words, showAll }) => {
    const filingNo = words.required('FILING_NO');
    return showAll(
      'links',
      (page) => client(AdminService).listAllLinks({ filingNo, ...page }),
      (link: EvidenceLink, session) => showLink(link, filingNo, session),
    );
  }),
};

const revokeLink: Action = {
  usage: 'evidence revoke-link LINK_ID [--reason TEXT] [--json]',
  details: ['Revokes a link to evidence at once, also in a running server.'],
  ...calls(async (session) => {
    const request = { linkId: session.words.required('LINK_ID'), reason: session.reason };
    const { link, filingNo } = await session.client(AdminService).revokeLink(request);
    showLink(present(link), filingNo, session);
  }),
};

function showLink(link: EvidenceLink, filingNo: string, session: CallSession): void {
  const { linkId, sequence, createdAt, expiresAt, revokedAt = null, disclose } = link;
  const end = revokedAt === null ? `expires ${expiresAt}` : `revoked ${revokedAt}`;
  const shown = disclose === undefined ? [] : [`discloses ${disclose}`];
  const line = [linkId, `${filingNo}/${sequence}`, `created ${createdAt}`, end, ...shown].join('  ');
  session.show({ linkId, filingNo, sequence, createdAt, expiresAt, revokedAt, disclose }, line);
}

/** `artseal certificate` */
export const certificate: Command = {
  usage: 'certificate FILING_NO [--disclose LIST] [--out FILE] [--json]',
  summary: 'write the certificate of a filing',
  details: [
    'Writes one page of PDF with the record, its place in the evidence log and a QR code. The evidence bundle is attached to it.',
    'The file is FILING_NO.pdf in the current folder, or --out. It is replaced if it exists.',
    '--disclose shows only the members in LIST, such as author,era,size: all others, such as the price, are hidden.',
    'It needs a running server, which has signed the evidence log.',
  ],
  ...calls(async ({ client, words, show }) => {
    const filingNo = words.required('FILING_NO');
    const disclose = words.text('disclose');
    const request = { filingNo, ...(disclose !== undefined && { disclose }) };
    const { certificate } = await client(EvidenceService).getCertificate(request);
    const { data } = present(certificate);
    const out = resolve(words.text('out') ?? `${filingNo}.pdf`);
    await replaceFile(out, data);
    show({ file: out, bytes: data.length }, `${out}: ${data.length} bytes`);
  }),
};

/** `artseal evidence` */
export const evidence: CommandGroup = {
  summary: 'show and rotate the keys of the evidence log, fork it, list and revoke links to evidence',
  actions: [vkey, rotateKey, fork, links, revokeLink],
  details: [
    'See docs/operate/evidence-log.md, and docs/operate/incidents/evidence-log-not-signed.md if nothing is signed.',
  ],
};
