import { type Action, type CommandGroup, nameOf, type Part, partsOf, type Task, wordOf } from './command.ts';

/** What can be typed at a place of the command line. */
interface Candidates {
  readonly words: readonly string[];
  /** Whether a file or folder can be typed, too. */
  readonly files: boolean;
}

/** A place of the command line: what can be typed after `key create`, for example. */
interface Place extends Candidates {
  /** The words from the beginning: none, a command, or a command and an action. */
  readonly path: string;
  readonly flags: readonly (Candidates & Pick<Part, 'name' | 'value'>)[];
}

/** Values in usage lines that are no choices to type as they are; `-` is for scripts. */
const placeholders = ['N', 'URL', 'DATE', 'DURATION', '-'];
const fileNames = ['FILE', 'DIR', 'FOLDER', 'BUNDLE'];
const help: Place['flags'][number] = { name: 'help', value: undefined, words: [], files: false };

/** `artseal completion`: prints scripts for shells, made of the usage lines. */
export function createCompletion(loadTasks: () => Promise<readonly Task[]>): CommandGroup {
  const action = (shell: string, script: (tasks: readonly Task[]) => string, use: string): Action => ({
    usage: `completion ${shell}`,
    details: [use],
    run: async (_, { print }) => {
      print(script(await loadTasks()));
    },
  });
  return {
    summary: 'print a script that completes commands, flags and choices in a shell',
    actions: [
      action('bash', bashScript, 'For ~/.bashrc: source <(artseal completion bash)'),
      action('zsh', zshScript, 'For ~/.zshrc, after compinit: source <(artseal completion zsh)'),
      action('fish', fishScript, 'For ~/.config/fish/config.fish: artseal completion fish | source'),
    ],
    details: ['The Debian package installs these scripts.'],
  };
}

const commandsOf = (tasks: readonly Task[]) => tasks.flatMap(({ commands }) => [...commands]);

/** All places: first that after `artseal`, then those after each command and action. */
function placesOf(tasks: readonly Task[]): Place[] {
  const names = commandsOf(tasks).map(([name]) => name);
  const first: Place = {
    path: '',
    words: names,
    files: false,
    flags: [help, { ...help, name: 'version' }],
  };
  const others = commandsOf(tasks).flatMap(([name, command]) =>
    'actions' in command
      ? [
          placeOf(name, command.bare, command.actions.map(wordOf)),
          ...command.actions.map((action) => placeOf(nameOf(action), action)),
        ]
      : // `help` takes a command.
        [placeOf(name, command, command.usage.includes(' [COMMAND]') ? [...names, 'settings'] : [])],
  );
  return [first, ...others];
}

function placeOf(path: string, action: Action | undefined, words: readonly string[] = []): Place {
  const parts = action === undefined ? [] : partsOf(action);
  const flags = parts.filter(({ isFlag }) => isFlag);
  return {
    path,
    words,
    files: parts.some(({ isFlag, name }) => !isFlag && fileNames.includes(name)),
    flags: [...flags.map(({ name, value }) => ({ name, value, ...candidatesOf(value) })), help],
  };
}

/** The candidates for a value: `TRIAL` and others for `TRIAL|STANDARD|ENTERPRISE`, files for `URL|FOLDER`. */
function candidatesOf(value: string | undefined): Candidates {
  const names = value?.split('|') ?? [];
  const isChoice = (name: string) => names.length > 1 && ![...placeholders, ...fileNames].includes(name);
  return { words: names.filter(isChoice), files: names.some((name) => fileNames.includes(name)) };
}

/** The functions that the scripts for bash and zsh share. */
function sharedFunctions(tasks: readonly Task[]): string {
  const cases = placesOf(tasks).flatMap(({ path, flags, ...candidates }) => [
    {
      pattern: quoted(path),
      body: `${assigned(candidates)} flags=${quoted(flags.map(({ name }) => `--${name}`).join(' '))}`,
    },
    ...flags
      .filter(({ value }) => value !== undefined)
      .map((flag) => ({ pattern: quoted(`${path} --${flag.name}`), body: assigned(flag) })),
  ]);
  const lines = Array.from(
    Map.groupBy(cases, ({ body }) => body),
    ([body, same]) => `  ${same.map(({ pattern }) => pattern).join('|')}) ${body} ;;`,
  );
  return `
# Sets what can follow at a place: a command, an action, or a flag with a value.
_artseal_at() {
  next= files= flags=
  case $1 in
${lines.join('\n')}
  *) return 1 ;;
  esac
}
# Sets what can follow, by position, previous word, current word, command, and action.
_artseal_find() {
  if [[ $2 == --* ]] && { _artseal_at "$4 $5 $2" || _artseal_at "$4 $2"; }; then return; fi
  if (( $1 == 1 )); then _artseal_at ''
  elif (( $1 == 2 )); then _artseal_at "$4"
  else _artseal_at "$4 $5" || { _artseal_at "$4" && next=; }
  fi
  if [[ $3 == -* ]]; then next=$flags files=
  elif [[ -z $next$files ]]; then next=$flags
  fi
}`;
}

const assigned = ({ words, files }: Candidates): string =>
  `next=${quoted(words.join(' '))} files=${files ? 'yes' : ''}`;

const bashScript = (tasks: readonly Task[]): string => `# Completes artseal in bash.
${sharedFunctions(tasks)}
_artseal() {
  local next files flags current=\${COMP_WORDS[COMP_CWORD]} previous=\${COMP_WORDS[COMP_CWORD-1]}
  # bash splits --flag=value into three words.
  if [[ $current == = ]]; then current=; fi
  if [[ $previous == = ]]; then previous=\${COMP_WORDS[COMP_CWORD-2]}; fi
  _artseal_find "$COMP_CWORD" "$previous" "$current" "\${COMP_WORDS[1]}" "\${COMP_WORDS[2]-}"
  COMPREPLY=($(compgen -W "$next" -- "$current"))
  if [[ -n $files ]]; then compopt -o default; fi
}
complete -F _artseal artseal artseal-admin`;

const zshScript = (tasks: readonly Task[]): string => `#compdef artseal artseal-admin
# Completes artseal in zsh.
${sharedFunctions(tasks)}
_artseal() {
  local next files flags found=1 previous=$words[CURRENT-1]
  local -a summaries=(${commandsOf(tasks)
    .map(([name, { summary }]) => quoted(`${name}:${summary}`))
    .join(' ')})
  if compset -P '--*='; then previous=\${IPREFIX%=}; fi
  _artseal_find "$((CURRENT - 1))" "$previous" "$PREFIX" "$words[2]" "$words[3]"
  if (( CURRENT == 2 )) && [[ $PREFIX != -* ]]; then
    _describe command summaries && found=0
  elif [[ -n $next ]]; then
    compadd -- \${=next} && found=0
  fi
  if [[ -n $files ]]; then _files && found=0; fi
  return found
}
if [[ $funcstack[1] == _artseal ]]; then _artseal "$@"; else compdef _artseal artseal artseal-admin; fi`;

const fishScript = (tasks: readonly Task[]): string => `# Completes artseal in fish.
function __artseal_at --description 'Whether the words after artseal are these'
  set -l words (commandline -opc)
  set -e words[1]
  test "$words" = "$argv"
end
function __artseal_after --description 'Whether the words after artseal begin with these'
  set -l words (commandline -opc)
  set -e words[1]
  set words $words[1..(count $argv)]
  test "$words" = "$argv"
end
complete -c artseal -f
complete -c artseal -l help
${commandsOf(tasks)
  .map(([name, { summary }]) => `complete -c artseal -n __artseal_at -a ${name} -d ${quoted(summary)}`)
  .join('\n')}
complete -c artseal -n __artseal_at -l version
${placesOf(tasks).slice(1).flatMap(fishLines).join('\n')}
complete -c artseal-admin -w artseal`;

function fishLines({ path, words, files, flags }: Place): string[] {
  const after = `complete -c artseal -n '__artseal_after ${path}'`;
  const ofFlags = flags
    .filter((flag) => flag !== help)
    .map((flag) => {
      const value = flag.value === undefined ? '' : flag.files ? ' -rF' : ' -x';
      return `${after} -l ${flag.name}${value} -a ${quoted(flag.words.join(' '))}`;
    });
  return [
    ...words.map((word) => `complete -c artseal -n '__artseal_at ${path}' -a ${word}`),
    ...(files ? [`${after} -F`] : []),
    ...ofFlags,
  ];
}

/** A text in quotes that all three shells read alike. */
const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;
