import type { WebhookTestResult } from '../../store/webhook-commands.ts';

/** The response fields of a message. Bytes that are not UTF-8 become U+FFFD. */
export function answerFields({ httpStatus, answer, error }: Omit<WebhookTestResult, 'isDelivered'>): {
  readonly httpStatus?: number;
  readonly answer?: string;
  readonly error?: string;
} {
  return {
    ...(httpStatus !== null && { httpStatus }),
    ...(answer !== null && { answer: Buffer.from(answer).toString() }),
    ...(error !== null && { error }),
  };
}
