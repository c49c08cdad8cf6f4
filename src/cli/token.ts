import { allOf, type StoredToken } from '../store/store.ts';
import { readWords } from './arguments.ts';
import { type Actions, type Command, runAction, type Terminal } from './command.ts';
import { withRegistry } from './registry.ts';

/** What `artseal token` can do. */
const actions: Actions = new Map(
  Object.entries<(words: string[], terminal: Terminal) => Promise<void>>({
    create: async (words, terminal) => {
      const read = readWords(words, 0, {
        name: { type: 'string' },
        operator: { type: 'boolean' },
        json: { type: 'boolean' },
      });
      const name = read.required('name');
      await withRegistry(terminal, async ({ store, issuance }) => {
        const { stored, token } = await issuance.issueToken(name, read.has('operator'));
        await store.durable();
        const issued = { tokenId: stored.tokenId, token, name: stored.caller, operator: stored.operator };
        if (read.has('json')) return terminal.print(JSON.stringify(issued));
        for (const [label, value] of Object.entries(issued)) terminal.print(`${label.padEnd(8)} ${value}`);
        terminal.print('The token is shown this once; only its SHA-256 is stored.');
      });
    },
    list: async (words, terminal) => {
      const read = readWords(words, 0, { json: { type: 'boolean' } });
      await withRegistry(terminal, async ({ store }) => {
        for await (const token of allOf(store.callers.listTokens))
          terminal.print(read.has('json') ? JSON.stringify(shown(token)) : line(token));
      });
    },
    revoke: async (words, terminal) => {
      const [tokenId = ''] = readWords(words, 1, {}).positionals;
      await withRegistry(terminal, async ({ store }) => {
        const revoked = await store.callers.revokeToken(tokenId, Math.floor(Date.now() / 1000));
        await store.durable();
        terminal.print(line(revoked));
      });
    },
  }),
);

/** `artseal token` */
export const token: Command = {
  usage: 'token create|list|revoke',
  summary: 'issue and revoke the bearer tokens of internal systems',
  details: [
    'token create --name NAME [--operator] [--json]',
    '    an operator token may also govern keys (AdminService).',
    'token list [--json]',
    'token revoke TOKEN_ID',
    'A running server honours changes at once.',
  ],
  run: (words, terminal) => runAction(actions, words, terminal),
};

function shown({ tokenId, caller, operator, revokedAtS }: StoredToken) {
  return { tokenId, name: caller, operator, revokedAtS };
}

function line(stored: StoredToken): string {
  const { tokenId, name, operator, revokedAtS } = shown(stored);
  const state = revokedAtS === null ? 'valid' : 'revoked';
  return `${tokenId}  ${state.padEnd(7)}  ${operator ? 'operator' : 'service '}  ${name}`;
}
