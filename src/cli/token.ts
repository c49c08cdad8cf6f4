import type { StoredToken } from '../store/caller-commands.ts';
import { allOf } from '../store/paging.ts';
import { localActor } from './actor.ts';
import type { Action, CommandGroup, Terminal, Words } from './command.ts';
import { withRegistry } from './registry.ts';

const create: Action = {
  usage: 'token create --name NAME [--operator] [--reason TEXT] [--json]',
  details: ['issues a token, shown this once; with --operator it may also govern keys (AdminService).'],
  run: (words, terminal) =>
    withRegistry(terminal, async ({ issuance }) => {
      const by = localActor(words, terminal);
      const { stored, token } = await issuance.issueToken(words.required('name'), words.has('operator'), by);
      const issued = { tokenId: stored.tokenId, token, name: stored.caller, operator: stored.operator };
      if (words.has('json')) return terminal.print(JSON.stringify(issued));
      for (const [label, value] of Object.entries(issued)) terminal.print(`${label.padEnd(8)} ${value}`);
      terminal.print('The token is shown this once; only its SHA-256 is stored.');
    }),
};

const list: Action = {
  usage: 'token list [--json]',
  details: [],
  run: (words, terminal) =>
    withRegistry(terminal, async ({ execute }) => {
      const tokens = allOf((page) => execute({ kind: 'ListTokens', page }));
      for await (const found of tokens) show(found, words, terminal);
    }),
};

const revoke: Action = {
  usage: 'token revoke TOKEN_ID [--reason TEXT] [--json]',
  details: ['refuses the token for ever.'],
  run: (words, terminal) =>
    withRegistry(terminal, async ({ execute }) => {
      const [by, tokenId] = [localActor(words, terminal), words.required('TOKEN_ID')];
      const revoked = await execute({ kind: 'RevokeToken', by, tokenId });
      show(revoked, words, terminal);
    }),
};

/** `artseal token` */
export const token: CommandGroup = {
  summary: 'issue and revoke the bearer tokens of internal systems',
  actions: [create, list, revoke],
  details: ['A running server honours changes at once.'],
};

function show(found: StoredToken, words: Words, { print }: Terminal): void {
  const { tokenId, caller: name, operator, revokedAtS } = found;
  const state = revokedAtS === null ? 'valid' : 'revoked';
  const columns = [tokenId, state.padEnd(7), operator ? 'operator' : 'service ', name];
  print(words.has('json') ? JSON.stringify({ tokenId, name, operator, revokedAtS }) : columns.join('  '));
}
