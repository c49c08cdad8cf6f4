/** By the name in the schema. */
const names = new Map<string, string>();

/** The column of a member: `filedAtS` is filed_at_s. */
export function columnOf(member: string): string {
  let column = names.get(member);
  if (column === undefined) {
    column = member.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
    names.set(member, column);
  }
  return column;
}
