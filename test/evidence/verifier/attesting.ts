import { randomBytes } from 'node:crypto';
import { makeQuery } from '../../../src/evidence/formats/time-stamp.ts';
import type { TimeStampAuthority, TimeStampReplyLie } from '../../support/time-stamp-authority.ts';
import { begunS } from './small-log.ts';

/** When witnesses of tests cosign, Unix seconds: an hour after the small log was begun. */
export const cosignedAtS = begunS + 3_600;

/** The token in a reply, which is a sequence of a status and of it. */
function tokenOf(reply: Buffer): Buffer {
  const headBytes = reply[1] === 0x82 ? 4 : 3;
  const statusBytes = 2 + (reply[headBytes + 1] ?? 0);
  return reply.subarray(headBytes + statusBytes);
}

/** A token over a text, in base64. */
export async function tokenOver(
  text: string,
  by: TimeStampAuthority,
  lie?: TimeStampReplyLie,
): Promise<string> {
  const reply = await by.reply(makeQuery(text, randomBytes(16)), lie);
  return tokenOf(reply).toString('base64');
}
