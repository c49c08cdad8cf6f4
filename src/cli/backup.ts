import { resolve } from 'node:path';
import { create } from '@bufbuild/protobuf';
import type { CallOptions, Client } from '@connectrpc/connect';
import {
  type Backup,
  type BackupProgress,
  BackupSchema,
  BackupService,
  type RotateBackupsResponse_Rotation as Rotation,
  RotateBackupsResponse_RotationSchema as RotationSchema,
  type VerifyBackupResponse_Verdict as Verdict,
  VerifyBackupResponse_VerdictSchema as VerdictSchema,
} from '../../gen/artseal/v1/backup_pb.ts';
import { writeMessage } from '../api/message-json.ts';
import { readDataDir, settings, usesPostgres } from '../config/config.ts';
import { refuse, textOf } from '../config/settings.ts';
import { parseBackupPeriod, parseBackupsKept } from '../config/values.ts';
import { refuseChangeableByOthers } from '../lib/file-access.ts';
import { type Progress, postgresBackups } from '../operations/backup/manifest.ts';
import { createBackupPlaces } from '../operations/backup/places.ts';
import { rotateBackups } from '../operations/backup/rotate.ts';
import { takeBackup } from '../operations/backup/take.ts';
import { verifyBackup } from '../operations/backup/verify.ts';
import { databaseFiles } from '../store/sqlite/location.ts';
import { described, factsOfBackup } from './backup-facts.ts';
import {
  type Action,
  type CommandGroup,
  type CommonFlags,
  exitCodes,
  readFlag,
  readRequired,
  type Terminal,
  UsageError,
  type Words,
} from './command.ts';
import { clientOf, findServer } from './connection.ts';
import { withProgress } from './progress.ts';
import { present } from './session.ts';

/** Flags of all actions. */
const common: CommonFlags = {
  usage: '[--offline-copy] [--url URL] [--progress] [--json]',
  details: [
    'The server that runs on ARTSEAL_DATA_DIR reads and writes the files. If none runs, the command does it itself.',
    '--offline-copy  does it without the server, from a snapshot of the database: for a server that hangs, or files that it may not use.',
    '--url https://HOST:PORT is the internal API of a remote server. FILE and DIR are then names in its ARTSEAL_BACKUP_DIR; the DIR',
    '. is that folder itself. It needs a token with the scope operate in ARTSEAL_TOKEN.',
    '--progress  prints lines of JSON {"progress":{"step":…,"done":…,"total":…}} before the result; done and total are bytes.',
  ],
};

const take: Action = {
  usage: 'backup FILE',
  details: [
    'Takes a backup of a database on SQLite: a tar archive with a manifest. The server may run and is not blocked.',
    'FILE must not exist. It appears when it is complete and on disk. Its name needs a . or a /, such as b.tar or ./b, so that no',
    'misspelled action becomes a file.',
    'The master key of a production is never in a backup: keep it elsewhere. That of a sandbox is.',
  ],
  common,
  run: async (words, terminal) => {
    if (words.required('FILE') === '-') throw new UsageError('needs a FILE on a disk, not standard output');
    refuseOnPostgres(words, terminal);
    const file = pathOf(words, 'FILE');
    const backup = await byServerOrHere<Backup>(words, terminal, {
      byServer: (client, options) => client.createBackup({ file }, options),
      here: async (progress) => {
        const dataDir = readTrustedFolder(terminal);
        const target = await placesOf(terminal).newFile(file, true);
        return factsOfBackup(file, await takeBackup({ dataDir, target, nowMs: Date.now(), progress }));
      },
    });
    terminal.show(writeMessage(BackupSchema, backup), ...described(backup));
  },
};

const rotate: Action = {
  usage: 'backup rotate --into DIR --keep N [--if-older-than PERIOD]',
  details: [
    'Takes a backup into DIR, verifies it, and then removes old backups of rotations, so that the newest N stay.',
    'If the new backup is damaged, it removes none and exits with 1. artseal check and the metrics report the result.',
    '--if-older-than 24h  takes no backup if the last attempt succeeded and its backup is younger.',
    'serve does the same regularly if ARTSEAL_BACKUP_DIR is set.',
  ],
  common,
  run: async (words, terminal) => {
    const into = pathOf(words, 'into');
    const keep = readRequired(words, 'keep', parseBackupsKept);
    refuseOnPostgres(words, terminal);
    const everyMs = readFlag(words, 'if-older-than', parseBackupPeriod);
    const age = everyMs === undefined ? {} : { ifOlderThanSeconds: everyMs / 1_000 };
    const rotated = await byServerOrHere<Rotation>(words, terminal, {
      byServer: (client, options) => client.rotateBackups({ into, keep, ...age }, options),
      here: async (progress) => {
        const dataDir = readTrustedFolder(terminal);
        const folder = await placesOf(terminal).folder(into, true);
        const order = { dataDir, folder, keep, everyMs, nowMs: Date.now(), progress };
        return create(RotationSchema, await rotateBackups(order));
      },
    });
    const { file, isNew, removed, broken } = rotated;
    terminal.show(
      writeMessage(RotationSchema, rotated),
      isNew ? `taken and verified: ${file}` : `not taken: the last one is young enough: ${file}`,
      ...removed.map((name) => `removed: ${name}`),
      ...broken.map((name) => `incomplete backup, look at it and remove it: ${name}`),
    );
  },
};

const verify: Action = {
  usage: 'backup verify FILE',
  details: [
    'Checks every byte: checksums, databases, the evidence hash of every filing, and the evidence log with its records.',
    'Exit code 1 if something is wrong. Needs space in TMPDIR to unpack the backup; if the server does it, in that of the server.',
  ],
  common,
  run: async (words, terminal) => {
    const file = pathOf(words, 'FILE');
    const verdict = await byServerOrHere<Verdict>(words, terminal, {
      byServer: (client, options) => client.verifyBackup({ file }, options),
      here: async (progress) => {
        const { manifest, faults } = await verifyBackup(file, progress);
        return create(VerdictSchema, { backup: factsOfBackup(file, manifest), faults: [...faults] });
      },
    });
    return showVerdict(words, terminal, verdict);
  },
};

function showVerdict(words: Words, terminal: Terminal, verdict: Verdict): number {
  const { faults } = verdict;
  const backup = present(verdict.backup);
  if (words.has('json')) terminal.print(JSON.stringify(writeMessage(VerdictSchema, verdict)));
  else if (faults.length > 0)
    for (const fault of faults) terminal.printError(`artseal: ${backup.file}: ${fault}`);
  else for (const line of [...described(backup), sound]) terminal.print(line);
  return faults.length > 0 ? exitCodes.failed : exitCodes.done;
}

const sound = 'sound: checksums, indexes, evidence hashes and the evidence log are right';

/** `artseal backup` */
export const backup: CommandGroup = {
  summary: 'take, rotate and verify backups',
  bare: take,
  actions: [verify, rotate],
  details: ['artseal restore restores a backup. tar and sqlite3 can read it, too.', `${postgresBackups}.`],
};

/** The absolute path of a word; with `--url`, the name of a file or a folder of the remote server. */
function pathOf(words: Words, name: 'FILE' | 'into'): string {
  const word = words.required(name);
  if (!words.has('url')) return resolve(word);
  return name === 'into' && word === '.' ? '' : word;
}

/** Two ways to do the same work. */
interface Ways<T> {
  byServer(client: Client<typeof BackupService>, options: CallOptions): AsyncIterable<AnyResponse>;
  here(progress: Progress): Promise<T>;
}

/** A response of BackupService: the progress, and at last the result. */
interface AnyResponse {
  readonly response: { readonly case: string | undefined; readonly value?: unknown };
}

/** Lets the server at `--url` or that of the data folder do the work, and does it here if none runs or with `--offline-copy`. */
function byServerOrHere<T>(words: Words, terminal: Terminal, { byServer, here }: Ways<T>): Promise<T> {
  return withProgress(words, terminal, async (report, signal) => {
    if (words.has('offline-copy')) {
      if (words.has('url')) throw new UsageError('takes --url or --offline-copy, not both');
      return here(report);
    }
    const connection = await findServer(words.text('url'), terminal.env);
    if (connection === undefined) return here(report);
    try {
      let result: unknown;
      const client = clientOf(BackupService, async () => connection);
      for await (const { response } of byServer(client, { signal })) {
        if (response.case === 'progress') {
          const { step, done, total } = response.value as BackupProgress;
          report(step, Number(done), Number(total));
        } else result = response.value;
      }
      return present(result) as T;
    } finally {
      await connection.close();
    }
  });
}

/** Throws ConfigError if the database of this machine is on PostgreSQL. */
function refuseOnPostgres(words: Words, { env }: Terminal): void {
  if (usesPostgres(env) && !words.has('url')) refuse(settings.databaseUrl, `is set, and ${postgresBackups}`);
}

/** The data folder, whose files no other user may change. Throws FilesExposed. */
function readTrustedFolder({ env }: Terminal): string {
  const dataDir = readDataDir(env);
  refuseChangeableByOthers(databaseFiles(dataDir));
  return dataDir;
}

/** The places for backups of this process. Under systemd it can write only where the service can. */
const placesOf = ({ env }: Terminal) =>
  createBackupPlaces(textOf(env, settings.backupDir) || undefined, env.STATE_DIRECTORY?.split(':'));
