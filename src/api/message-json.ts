import { type DescField, type DescMessage, isFieldSet, type Message } from '@bufbuild/protobuf';

/** The documented JSON of a message: all members that are not optional, in the order of the schema. */
export function writeMessage(desc: DescMessage, message: Message): Record<string, unknown> {
  const values = message as unknown as Record<string, unknown>;
  const output: Record<string, unknown> = {};
  for (const field of desc.fields) {
    const value = values[field.localName];
    if (field.fieldKind === 'list')
      output[field.jsonName] = (value as unknown[]).map((item) => writeSingle(field, item));
    else if (value !== undefined && (!field.proto.proto3Optional || isFieldSet(message, field))) {
      output[field.jsonName] = writeSingle(field, value);
    }
  }
  return output;
}

function writeSingle(field: DescField, value: unknown): unknown {
  if (field.enum !== undefined) return field.enum.value[value as number]?.name;
  if (field.message !== undefined) return writeMessage(field.message, value as Message);
  if (typeof value !== 'bigint') return value;
  const number = Number(value);
  if (!Number.isSafeInteger(number))
    throw new Error(`${field} holds ${value}, which JSON cannot carry exactly.`);
  return number;
}
