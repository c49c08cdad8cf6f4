import '../../packaging/module-resolution.ts';
import { parentPort } from 'node:worker_threads';
import type { CertificateContent } from './content.ts';

/** A certificate to draw. */
export interface DrawRequest {
  readonly id: number;
  readonly content: CertificateContent;
}

/** A drawn certificate, or why there is none. */
export type DrawResponse =
  | { readonly id: number; readonly pdf: Uint8Array }
  | { readonly id: number; readonly error: Error };

// Loaded after module-resolution.ts, which it needs.
const { createDrawing } = await import('./drawing.ts');

if (parentPort === null) throw new Error('The thread of certificates was started as a program.');
const port = parentPort;
const draw = createDrawing();

port.on('message', ({ id, content }: DrawRequest) => {
  const respond = (response: DrawResponse) => port.postMessage(response);
  draw(content).then(
    (pdf) => respond({ id, pdf }),
    (error) => respond({ id, error }),
  );
});
