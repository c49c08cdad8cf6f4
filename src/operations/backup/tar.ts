import { closeSync, createReadStream, openSync, readSync, statSync } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { Readable } from 'node:stream';

/** A file in a tar archive. */
export interface TarMember {
  readonly name: string;
  readonly bytes: number;
  /** Unix seconds. */
  readonly mtimeS: number;
  /** Where its content begins in the archive. */
  readonly offset: number;
}

/** A file that goes into an archive. */
export interface TarSource {
  /** At most 100 ASCII characters, no folder. */
  readonly name: string;
  /** The file, or its content. */
  readonly from: string | Uint8Array;
}

/** The archive is cut off, changed, or of another program. The message follows its name. */
export class TarError extends Error {
  override name = 'TarError';
}

const blockBytes = 512;
const endBytes = 2 * blockBytes;
/** The largest size that the field has octal digits for; GNU tar and all others read larger ones in binary. */
const octalMax = 0o77777777777;
/** Files of one archive, at most. */
const membersMax = 16;

/**
 * Writes a new archive in the POSIX format ustar that only its user can read. Resolves when it is on disk. `onBytes` receives
 * the number of bytes of each write.
 */
export async function writeTar(
  file: string,
  sources: readonly TarSource[],
  mtimeS: number,
  onBytes: (bytes: number) => void,
): Promise<void> {
  const archive = await open(file, 'wx', 0o600);
  try {
    for (const source of sources) await append(archive, source, mtimeS, onBytes);
    await archive.writeFile(Buffer.alloc(endBytes));
    await archive.sync();
  } finally {
    await archive.close();
  }
}

async function append(
  archive: FileHandle,
  { name, from }: TarSource,
  mtimeS: number,
  onBytes: (bytes: number) => void,
): Promise<void> {
  const bytes = typeof from === 'string' ? statSync(from).size : from.length;
  await archive.writeFile(headerOf(name, bytes, mtimeS));
  let written = 0;
  for await (const chunk of typeof from === 'string' ? createReadStream(from, chunks) : [from]) {
    await archive.writeFile(chunk);
    written += chunk.length;
    onBytes(chunk.length);
  }
  if (written !== bytes) throw new Error(`${name} changed while it was read.`);
  await archive.writeFile(Buffer.alloc(paddingOf(bytes)));
}

const chunks = { highWaterMark: 1_048_576 };

/**
 * Lists the files of an archive. Throws TarError for anything that `writeTar` does not write: outside of the files' contents,
 * only names, sizes and times can differ, and these are well-formed.
 */
export function listTar(file: string): readonly TarMember[] {
  // Opening a pipe could block for ever, and no signal but SIGKILL would end it.
  const stats = statSync(file);
  if (!stats.isFile()) throw new TarError('is no regular file');
  const { size } = stats;
  const archive = openSync(file, 'r');
  try {
    const members: TarMember[] = [];
    let offset = 0;
    while (members.length < membersMax) {
      const header = blockAt(archive, offset);
      if (isZero(header)) {
        if (offset + endBytes !== size) throw new TarError('does not end where it should');
        if (!isZero(blockAt(archive, offset + blockBytes))) throw new TarError('has a damaged end');
        return members;
      }
      const member = memberOf(header, offset + blockBytes);
      members.push(member);
      const padding = Buffer.alloc(paddingOf(member.bytes));
      offset = member.offset + member.bytes + padding.length;
      if (offset + endBytes > size) throw new TarError('is cut off');
      readSync(archive, padding, 0, padding.length, offset - padding.length);
      if (!isZero(padding)) throw new TarError(`has a damaged padding after ${member.name}`);
    }
    throw new TarError('holds too many files');
  } finally {
    closeSync(archive);
  }
}

/** Reads a file of an archive. */
export function readMember(file: string, { offset, bytes }: TarMember): AsyncIterable<Buffer> {
  // createReadStream rejects a range that ends before it begins, as that of an empty file does.
  return bytes === 0
    ? Readable.from([])
    : createReadStream(file, { ...chunks, start: offset, end: offset + bytes - 1 });
}

function blockAt(archive: number, offset: number): Buffer {
  const block = Buffer.alloc(blockBytes);
  if (readSync(archive, block, 0, blockBytes, offset) < blockBytes) throw new TarError('is cut off');
  return block;
}

const isZero = (bytes: Buffer): boolean => bytes.every((byte) => byte === 0);

const paddingOf = (bytes: number): number => (blockBytes - (bytes % blockBytes)) % blockBytes;

/** The offsets of the fields are defined in POSIX.1-1988, pax(1). */
function headerOf(name: string, bytes: number, mtimeS: number): Buffer {
  const header = Buffer.alloc(blockBytes);
  header.write(name, 0, 100, 'ascii');
  header.write('0000600\0', 100, 'ascii');
  header.write('0000000\0', 108, 'ascii');
  header.write('0000000\0', 116, 'ascii');
  if (bytes <= octalMax) header.write(octal(bytes, 11), 124, 'ascii');
  else {
    header.writeUInt8(0x80, 124);
    header.writeBigUInt64BE(BigInt(bytes), 128);
  }
  header.write(octal(mtimeS, 11), 136, 'ascii');
  header.write('0', 156, 'ascii');
  header.write('ustar\0' + '00', 257, 'ascii');
  header.write(octal(checksumOf(header), 6), 148, 'ascii');
  header.write(' ', 155, 'ascii');
  return header;
}

const octal = (value: number, digits: number): string => `${value.toString(8).padStart(digits, '0')}\0`;

/** The sum of all bytes, with those of the checksum counted as spaces. */
function checksumOf(header: Buffer): number {
  return header.reduce((sum, byte, place) => sum + (place >= 148 && place < 156 ? 0x20 : byte), 0);
}

function memberOf(header: Buffer, offset: number): TarMember {
  const text = (start: number, length: number) =>
    header.toString('latin1', start, start + length).replace(/\0.*$/s, '');
  const bytes =
    header.readUInt8(124) === 0x80 ? Number(header.readBigUInt64BE(128)) : Number.parseInt(text(124, 12), 8);
  const [name, mtimeS] = [text(0, 100), Number.parseInt(text(136, 12), 8)];
  // Some changes leave the checksum, a sum, as it is.
  const isSound = Number.isSafeInteger(bytes) && header.equals(headerOf(name, bytes, mtimeS));
  if (!isSound) throw new TarError('has a damaged or foreign header');
  return { name, bytes, mtimeS, offset };
}
