import Sqlite from 'better-sqlite3';

/** Says whether the disk has no room for the commit that comes now. */
type IsFull = () => boolean;

/** By the folder of the database. */
const disks = new Map<string, IsFull>();

/** Makes the commits of the database in a folder fail as on a full disk, when told so; until called off. */
export function fillDisk(folder: string, isFull: IsFull): () => void {
  disks.set(folder, isFull);
  return () => disks.delete(folder);
}

const prepare = Sqlite.prototype.prepare;

// The store has no hook for it, and shall have none.
Sqlite.prototype.prepare = function prepared(this: Sqlite.Database, source: string) {
  const statement = prepare.call(this, source);
  const isFull =
    source === 'COMMIT' ? [...disks].find(([folder]) => this.name.startsWith(`${folder}/`))?.[1] : undefined;
  if (isFull === undefined) return statement;
  const run = statement.run.bind(statement) as () => Sqlite.RunResult;
  statement.run = (() => {
    if (isFull()) throw new Sqlite.SqliteError('database or disk is full', 'SQLITE_FULL');
    return run();
  }) as typeof statement.run;
  return statement;
} as typeof prepare;
