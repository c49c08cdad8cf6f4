import { createPrivateKey, createPublicKey, randomBytes, sign } from 'node:crypto';
import { makeQuery, nonceBytes } from '../../../src/evidence/log/time-stamp.ts';
import type { TimeStampAuthority, TimeStampReplyLie } from '../../support/time-stamp-authority.ts';
import { vkeyOf } from '../../support/witness-stand-in.ts';
import { begunS } from './small-log.ts';

/** When witnesses of tests cosign, Unix seconds: an hour after the small log was begun. */
export const cosignedAtS = begunS + 3_600;

/** The text of the checkpoint of a tlog-proof. */
export function textOf(proof: string): string {
  const checkpoint = proof.slice(proof.indexOf('\n\n') + 2);
  return checkpoint.slice(0, checkpoint.indexOf('\n\n') + 1);
}

/** A witness, and how it cosigns the text of a checkpoint. */
export function createWitness(name: string, seed = randomBytes(32)) {
  const der = Buffer.concat([Buffer.from('302e020100300506032b657004220420', 'hex'), seed]);
  const privateKey = createPrivateKey({ key: der, format: 'der', type: 'pkcs8' });
  const vkey = vkeyOf(name, 4, createPublicKey(privateKey));
  return {
    vkey,
    line: (text: string, timeS = cosignedAtS, signedTimeS = timeS) => {
      const time = Buffer.alloc(8);
      time.writeBigUInt64BE(BigInt(timeS));
      const signature = sign(null, Buffer.from(`cosignature/v1\ntime ${signedTimeS}\n${text}`), privateKey);
      const id = Buffer.from(vkey.split('+')[1] ?? '', 'hex');
      return `— ${name} ${Buffer.concat([id, time, signature]).toString('base64')}\n`;
    },
  };
}

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
  const reply = await by.reply(await makeQuery(text, randomBytes(nonceBytes)), lie);
  return tokenOf(reply).toString('base64');
}
