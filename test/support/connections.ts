import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { actionsOf, nameOf } from '../../src/cli/command.ts';
import { loadCommand } from '../../src/cli/commands.ts';
import { artsealWith, type CommandLine } from './artseal.ts';
import { type ServiceOptions, startService, type TestService } from './service.ts';
import { temporaryFolder } from './temporary-folder.ts';

/** How a command reaches the services. */
export const connections = ['a running server', 'a stopped folder', 'a remote server'] as const;

/** One of them. */
export type Connection = (typeof connections)[number];

/** What cannot succeed: without a server there is nothing to reload, and the evidence log is not signed. */
const impossible = ['reload over a stopped folder', 'certificate over a stopped folder'];

/** The command lines that succeeded, each after its connection. */
const succeeded = new Set<string>();

/** The commands of a registry, over a connection: of the folder of an earlier service, or of a new one, which is empty. */
export async function commandsOver(
  t: TestContext,
  connection: Connection,
  { env = {}, dataDir: earlier, ...options }: ServiceOptions = {},
) {
  const dataDir = earlier ?? temporaryFolder(t);
  let started: Promise<TestService> | undefined;
  /** Returns the service that answers; that of a stopped folder is started. */
  const service = () => {
    started ??= startService(t, { env, dataDir, ...options });
    return started;
  };
  if (connection === 'a stopped folder') {
    const artseal = artsealWith({ ARTSEAL_DATA_DIR: dataDir, ...env });
    if (earlier === undefined) await artseal.text('init');
    return { ...recorded(connection, artseal), service };
  }
  const { internalUrl, token } = await service();
  const artseal =
    connection === 'a running server'
      ? artsealWith({ ARTSEAL_DATA_DIR: dataDir, ...env })
      : artsealWith({ ARTSEAL_TOKEN: await token(true) }, ['--url', internalUrl]);
  return { ...recorded(connection, artseal), service };
}

/** Records the command lines that succeed. */
function recorded(connection: Connection, artseal: ReturnType<typeof artsealWith>) {
  const recording =
    <Result>(run: (line: CommandLine) => Promise<Result>) =>
    async (line: CommandLine): Promise<Result> => {
      const result = await run(line);
      succeeded.add(`${connection}: ${typeof line === 'string' ? line : line.join(' ')}`);
      return result;
    };
  const { lines, text, list, json, errors } = artseal;
  return {
    ...{ lines: recording(lines), text: recording(text), list: recording(list), json: recording(json) },
    errors,
  };
}

/** Whether an action can call a server at a URL. */
export const isOnline = (action: Parameters<typeof nameOf>[0]): boolean =>
  `${action.usage} ${action.common?.usage}`.includes('--url');

/** The last test of a file: each action of these commands that can call a server has succeeded over every connection. */
export function testEveryConnection(...names: readonly string[]): void {
  test(`every action of ${names.join(' and ')} succeeds over every connection`, async () => {
    const untested: string[] = [];
    for (const name of names) {
      const actions = actionsOf((await loadCommand(name)) ?? assert.fail(name)).filter(isOnline);
      const byLength = actions.map(nameOf).toSorted((one, other) => other.length - one.length);
      // `backup verify FILE` is no `backup FILE`.
      const actionOf = (line: string) => byLength.find((action) => `${line} `.startsWith(`${action} `));
      for (const connection of connections) {
        const begin = `${connection}: `;
        const ran = [...succeeded].filter((line) => line.startsWith(begin));
        const tested = new Set(ran.map((line) => actionOf(line.slice(begin.length))));
        for (const action of byLength) if (!tested.has(action)) untested.push(`${action} over ${connection}`);
      }
    }
    assert.deepEqual(
      untested.filter((one) => !impossible.includes(one)),
      [],
    );
  });
}
