import { ownMasterKeyName } from '../../config/config.ts';
import { providers } from '../../config/payment-providers.ts';
import { sandboxCredentialsName } from '../../config/sandbox-credentials.ts';
import { databaseName } from '../../store/sqlite/location.ts';

/**
 * The files of a data folder that a backup contains, in the order in which they are copied. The state of a simulated
 * provider follows the database, since a provider may know more than the registry and never less. A production has only
 * the database.
 */
export const memberNames: readonly string[] = [
  databaseName,
  ...providers.flatMap(({ ownFiles }) => ownFiles),
  sandboxCredentialsName,
  ownMasterKeyName,
];

/** Whether a file of the data folder is an SQLite database, which is copied by SQLite. */
export const isDatabase = (name: string): boolean => name.endsWith('.db');
