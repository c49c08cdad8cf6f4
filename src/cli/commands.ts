import type { Command, CommandGroup, Task } from './command.ts';

/** Loads a command when it is needed. */
type Load = () => Promise<Command | CommandGroup>;

/** The commands by the task that an operator has. */
const tasks: Readonly<Record<string, Readonly<Record<string, Load>>>> = {
  'Run the service': {
    init: async () => (await import('./deployment.ts')).init,
    serve: async () => (await import('./serve.ts')).serve,
    ready: async () => (await import('./client-commands.ts')).ready,
    reload: async () => (await import('./server.ts')).reload,
    instances: async () => (await import('./server.ts')).instances,
    check: async () => (await import('./check.ts')).check,
    upgrade: async () => (await import('./deployment.ts')).upgrade,
    move: async () => (await import('./move.ts')).move,
    clock: async () => (await import('./server.ts')).clock,
  },
  'Back up and restore': {
    backup: async () => (await import('./backup.ts')).backup,
    restore: async () => (await import('./restore.ts')).restore,
    database: async () => (await import('./restore.ts')).database,
  },
  'Manage access': {
    access: async () => (await import('./access.ts')).access,
    platform: async () => (await import('./platform.ts')).platform,
    key: async () => (await import('./key.ts')).key,
    token: async () => (await import('./token.ts')).token,
    console: async () => (await import('./console.ts')).consoleCommand,
    secrets: async () => (await import('./secrets.ts')).secrets,
    'audit-log': async () => (await import('./history.ts')).auditLog,
  },
  'Manage orders and records': {
    party: async () => (await import('./party.ts')).party,
    escrow: async () => (await import('./escrow.ts')).escrow,
    requests: async () => (await import('./history.ts')).requests,
    events: async () => (await import('./history.ts')).events,
    webhooks: async () => (await import('./webhooks.ts')).webhooks,
    retention: async () => (await import('./retention.ts')).retention,
  },
  'Prove and verify': {
    certificate: async () => (await import('./evidence.ts')).certificate,
    evidence: async () => (await import('./evidence.ts')).evidence,
    verify: async () => (await import('./verify.ts')).verify,
    log: async () => (await import('./log-audit.ts')).log,
  },
  'Try it in a sandbox': {
    demo: async () => (await import('./client-commands.ts')).demo,
    call: async () => (await import('./client-commands.ts')).call,
    sign: async () => (await import('./client-commands.ts')).sign,
    listen: async () => (await import('./listen.ts')).listen,
    trigger: async () => (await import('./trigger.ts')).trigger,
    sandbox: async () => (await import('./server.ts')).sandbox,
  },
  'Learn about artseal': {
    help: async () => (await import('./help.ts')).createHelp(loadTasks),
    completion: async () => (await import('./completion.ts')).createCompletion(loadTasks),
    licenses: async () => (await import('./deployment.ts')).licenses,
  },
};

/** Loads the command with this name; undefined if there is none. */
export async function loadCommand(name: string): Promise<Command | CommandGroup | undefined> {
  return new Map(Object.values(tasks).flatMap((commands) => Object.entries(commands))).get(name)?.();
}

/** Loads all commands. */
export function loadTasks(): Promise<readonly Task[]> {
  return Promise.all(
    Object.entries(tasks).map(async ([title, commands]) => ({
      title,
      commands: new Map(
        await Promise.all(
          Object.entries(commands).map(async ([name, load]) => [name, await load()] as const),
        ),
      ),
    })),
  );
}
