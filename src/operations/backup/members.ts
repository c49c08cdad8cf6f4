import { ownMasterKeyName } from '../../config/config.ts';
import { providers } from '../../config/payment-providers.ts';
import { sandboxCredentialsName } from '../../config/sandbox-credentials.ts';
import { databaseName } from '../../store/sqlite/location.ts';

/**
 * The files of a data folder that belong together, in the order in which they are copied: the books of a simulated
 * provider behind the database, for a provider may know more than the registry and never less. A production has
 * the database alone.
 */
export const memberNames: readonly string[] = [
  databaseName,
  ...providers.flatMap(({ ownFiles }) => ownFiles),
  sandboxCredentialsName,
  ownMasterKeyName,
];

/** Whether a file of the data folder is a database of SQLite, which cannot be copied as it is. */
export const isDatabase = (name: string): boolean => name.endsWith('.db');
