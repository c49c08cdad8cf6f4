import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { runHere } from '../support/artseal.ts';
import { fileScope } from '../support/file-scope.ts';
import { skipUnlessInstalled } from '../support/installed.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

// The scripts are loaded by the shells that they are for. What Debian's packages of the shells configure is left out.

const commands =
  'access audit-log backup call certificate check clock completion console database demo escrow events evidence help init instances key licenses listen ' +
  'log move party platform ready reload requests restore retention sandbox secrets serve sign token trigger upgrade verify ' +
  'webhooks';
const actionFlags = '--filing-cap --help --json --monthly-quota --name --reason --tier --url';

/** What each shell completes: the last word of a line, by the line before it. */
const cases: readonly (readonly [line: string, candidates: string])[] = [
  ['artseal ', commands],
  ['artseal e', 'escrow events evidence'],
  ['artseal --', '--help --version'],
  ['artseal key ', 'create list resume revoke rotate suspend'],
  ['artseal key r', 'resume revoke rotate'],
  ['artseal key create --', actionFlags],
  ['artseal key create --tier ', 'ENTERPRISE STANDARD TRIAL'],
  ['artseal key create --tier=', 'ENTERPRISE STANDARD TRIAL'],
  ['artseal key create --name x --json --tier E', 'ENTERPRISE'],
  ['artseal key create --name ', ''],
  ['artseal platform set x --filing-cap ', 'none'],
  ['artseal platform set x --filing-cap none --ti', '--tier'],
  ['artseal-admin webhooks list --status ', 'DISABLED ENABLED'],
  ['artseal webhooks deliveries wh_1 --status ', 'DELIVERED FAILED PENDING WAITING'],
  ['artseal log ', 'audit'],
  ['artseal help se', 'secrets serve settings'],
  ['artseal completion ', 'bash fish zsh'],
  ['artseal nope ', ''],
  // Files of the folder, where a file can be typed.
  ['artseal restore fi', 'files.tar'],
  ['artseal restore files.tar --into f', 'files.tar folder'],
  ['artseal backup fi', 'files.tar'],
  ['artseal backup v', 'verify'],
  ['artseal escrow resolve ES-1 --evidence fi', 'files.tar'],
  ['artseal key f', ''],
];

const scripts = temporaryFolder(fileScope);
const folder = join(scripts, 'folder of the shell');
mkdirSync(join(folder, 'folder'), { recursive: true });
writeFileSync(join(folder, 'files.tar'), '');

/** Shells leave nothing in the real home folder. */
const environment = { ...process.env, HOME: scripts, TERM: 'dumb' };

/** Commands that append their names and arguments to a file, which then has each line as it was completed. */
const recorded = join(scripts, 'recorded');
const record = `for name in artseal artseal-admin; do eval "$name() { echo $name \\"\\$*\\" >>'${recorded}'; }"; done`;

/** The configuration of interactive shells; in both, Escape * inserts all candidates. */
const configurations = {
  bash: `unset HISTFILE\nsource '${scripts}/bash'\n${record}\n`,
  // The function is found as in Debian's folder of completions.
  zsh: `fpath=('${scripts}' $fpath)
autoload -U compinit && compinit -D -u
zle -C all-matches complete-word _generic
zstyle ':completion:all-matches::::' completer _all_matches _complete
zstyle ':completion:all-matches:*' insert true
bindkey '\\e*' all-matches
${record}
`,
};
writeFileSync(join(scripts, 'bashrc'), configurations.bash);
writeFileSync(join(scripts, '.zshrc'), configurations.zsh);

/** Writes the script that `artseal completion` prints. */
async function writeScript(shell: string, file = shell): Promise<void> {
  const { code, printed, errors } = await runHere(['completion', shell], {});
  assert.deepEqual([code, errors], [0, []]);
  writeFileSync(join(scripts, file), `${printed.join('\n')}\n`);
}

/** Types lines in an interactive shell on a terminal of its own. Returns them with all candidates for the last words. */
async function completedBy(command: string, lines: readonly string[]): Promise<readonly string[]> {
  rmSync(recorded, { force: true });
  const child = spawn('script', ['--quiet', '--return', '--command', command, '/dev/null'], {
    cwd: folder,
    env: { ...environment, ZDOTDIR: scripts, INPUTRC: '/dev/null' },
    stdio: ['pipe', 'ignore', 'inherit'],
  });
  child.stdin.end(`${lines.map((line) => `${line}\u001b*\n`).join('')}exit\n`);
  assert.deepEqual(await once(child, 'close'), [0, null]);
  return readFileSync(recorded, 'utf8').trimEnd().split('\n');
}

/** Sorted candidates. Shells differ in whether they repeat the `--tier=` that was typed, and mark folders. */
const sorted = (candidates: string): string =>
  candidates
    .replaceAll(/--tier=|\//g, '')
    .split(/\s+/)
    .filter((word) => word !== '')
    .sort()
    .join(' ');

for (const [shell, command] of [
  ['bash', `bash --noprofile --rcfile '${scripts}/bashrc' -i`],
  ['zsh', 'zsh --no-globalrcs -i'],
] as const) {
  test(`${shell} completes commands, actions, flags, choices and files`, {
    skip: skipUnlessInstalled(shell, 'script'),
  }, async () => {
    await writeScript(shell, shell === 'zsh' ? '_artseal' : shell);
    const completed = await completedBy(
      command,
      cases.map(([line]) => line),
    );
    assert.equal(completed.length, cases.length);
    for (const [index, [line, candidates]] of cases.entries()) {
      const place = line.lastIndexOf(' ') + 1;
      // What was typed stays if there is no candidate.
      const expected = candidates === '' ? line.slice(place) : candidates;
      assert.equal(sorted(completed[index]?.slice(place) ?? ''), sorted(expected), line);
    }
  });
}

test('fish completes commands, actions, flags, choices and files', {
  skip: skipUnlessInstalled('fish'),
}, async () => {
  await writeScript('fish');
  for (const [line, candidates] of cases) {
    const words = ['--no-config', '-c', 'source $argv[1]; complete -C $argv[2]', join(scripts, 'fish'), line];
    const { stdout } = await promisify(execFile)('fish', words, { cwd: folder, env: environment });
    // A description follows each.
    const found = stdout.split('\n').map((candidate) => candidate.split('\t')[0]);
    assert.equal(sorted(found.join(' ')), sorted(candidates), line);
  }
});
