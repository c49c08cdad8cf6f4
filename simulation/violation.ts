/** A rule was violated. The subject is an order, a filing, a session or the world. */
export class Violation extends Error {
  override name = 'Violation';
  readonly subject: string;

  constructor(subject: string, message: string) {
    super(`${subject}: ${message}`);
    this.subject = subject;
  }
}

/** Throws a Violation unless the condition holds. */
export function must(condition: boolean, subject: string, message: string): asserts condition {
  if (!condition) throw new Violation(subject, message);
}
