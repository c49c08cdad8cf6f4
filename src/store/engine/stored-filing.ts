import { getTableColumns, type InferSelectModel } from 'drizzle-orm';
import type { Attachment, Filing } from '../../domain/filing.ts';
import { caller, filing } from './schema.ts';

/** A row of a filing. */
export type FilingRow = InferSelectModel<typeof filing>;

/** A row of a filing with the name of its caller; null if the caller is not there. */
export type StoredFiling = FilingRow & { readonly caller: string | null };

/** The columns of a stored filing, in a query that joins the caller. */
export const storedFilingColumns = { ...getTableColumns(filing), caller: caller.name };

/** The filing of a row with the name of its caller. */
export const toFiling = ({
  id,
  callerId,
  filedAtS,
  previousId,
  salt,
  leafIndex,
  erasedAtS,
  recordVersion: _,
  attachments,
  ...row
}: FilingRow & { readonly caller: string }): Filing => ({
  ...row,
  attachments: readAttachments(attachments),
});

/** The attachments of a row. */
const readAttachments = (attachments: string | null): readonly Attachment[] =>
  attachments === null ? [] : JSON.parse(attachments);
