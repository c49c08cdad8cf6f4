import type { Worker } from 'node:worker_threads';
import { unavailable } from '../../domain/reason.ts';
import { createConcurrencyLimit } from '../../lib/concurrency.ts';
import { startThread } from '../../packaging/packaged-files.ts';
import { readVerifierKey, verifyBundle } from '../verifier/index.ts';
import { contentOf } from './content.ts';
import type { DrawRequest, DrawResponse } from './thread.ts';

/** See `createCertificates`. */
export type Certificates = ReturnType<typeof createCertificates>;

/** Certificates that are made at the same time, at most. */
const limits = {
  ...{ ofEach: 4, tooMany: 'Four certificates are being made for you: wait for one of them.' },
  ...{ ofAll: 16, full: 'Too many certificates are being made.' },
} as const;

/** How long the thread is kept without work, in milliseconds. It takes a second to start, and some memory. */
const idleMs = 30_000;

/** What a server gives its certificates. */
export interface CertificateOptions {
  /** The verifier keys of the log. */
  readonly verifierKeys: () => readonly string[];
  /** Where others reach the public API, without a slash at its end; undefined if that is not known. */
  readonly publicUrl: string | undefined;
  /** ISO 4217 code of prices. */
  readonly currency: string;
}

/** Makes certificates: PDF files with the record of a bundle, to which the bundle is attached. */
export function createCertificates({ verifierKeys, publicUrl, currency }: CertificateOptions) {
  const limit = createConcurrencyLimit<number>(limits);
  const drawing = createDrawingThread();
  return {
    /**
     * Makes the certificate of a bundle for a caller at `atMs`, Unix milliseconds. Throws RATE_LIMITED and UNAVAILABLE if too many
     * are being made, UNAVAILABLE if another key than the current ones signed the checkpoint, and an Error for a bundle that does
     * not verify.
     */
    certificateOf: async (bundle: object, callerId: number, atMs: number): Promise<Uint8Array> => {
      const leave = limit.enter(callerId);
      try {
        const text = JSON.stringify(bundle);
        const verdict = verifyBundle(text, { keys: verifierKeys().map(readVerifierKey) });
        if (!verdict.isProven && verdict.kind === 'BAD_SIGNATURE')
          throw unavailable('The evidence log is not signed with its new key yet.');
        if (!verdict.isProven)
          throw new Error(`The bundle of a certificate does not verify: ${verdict.what}.`);
        return await drawing.draw(contentOf(verdict.proven, text, { publicUrl, currency, atMs }));
      } finally {
        leave();
      }
    },
  };
}

/** A thread, and the certificates that it has to draw, by their ids. */
interface Drawing {
  readonly worker: Worker;
  readonly pending: Map<number, PromiseWithResolvers<Uint8Array>>;
}

/** Draws in a thread, which starts with the first certificate and ends some time after the last one. */
function createDrawingThread() {
  let current: Drawing | undefined;
  let idle: NodeJS.Timeout | undefined;
  let last = 0;

  function start(): Drawing {
    const worker = startThread('src/evidence/certificate/thread', { name: 'artseal-certificates' });
    // A thread that ends takes its own certificates with it, and not those of the next thread.
    const pending: Drawing['pending'] = new Map();
    const started = { worker, pending };
    worker.on('message', (response: DrawResponse) => {
      const waiting = pending.get(response.id);
      pending.delete(response.id);
      if ('pdf' in response) waiting?.resolve(response.pdf);
      else waiting?.reject(response.error);
      if (pending.size === 0 && current === started) rest(started);
    });
    const lose = (error: Error) => {
      if (current === started) current = undefined;
      for (const waiting of pending.values()) waiting.reject(error);
      pending.clear();
    };
    worker.on('error', lose);
    worker.on('exit', () => lose(new Error('The thread of certificates has ended.')));
    return started;
  }

  /** A thread without work does not keep the process alive. */
  function rest({ worker }: Drawing): void {
    worker.unref();
    idle = setTimeout(() => {
      current = undefined;
      void worker.terminate();
    }, idleMs).unref();
  }

  return {
    draw: (content: DrawRequest['content']): Promise<Uint8Array> => {
      clearTimeout(idle);
      current ??= start();
      const { worker, pending } = current;
      worker.ref();
      const waiting = Promise.withResolvers<Uint8Array>();
      last += 1;
      pending.set(last, waiting);
      worker.postMessage({ id: last, content } satisfies DrawRequest);
      return waiting.promise;
    },
  };
}
