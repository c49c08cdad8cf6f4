/** What goes wrong with a request to a stand-in. A stand-in can have faults of its own besides. */
export type RequestFault =
  /** The connection breaks before the request is carried out. */
  | 'lose-request'
  /** The connection breaks after the request was carried out. */
  | 'lose-answer'
  /** The response is 500, stored under the idempotency key; nothing is done. */
  | 'fail-and-save'
  /** The response is 500, stored under the idempotency key; everything is done. */
  | 'do-and-fail'
  /** Waits, with the key in use, before the request is carried out. */
  | { readonly until: () => Promise<void> }
  /** Waits before the request arrives at all, even if it is lost. */
  | { readonly onTheWay: () => Promise<void> };

/** The faults of coming requests. */
export function createRequestFaults<Fault>() {
  const faults: { readonly pattern: RegExp; readonly fault: Fault }[] = [];
  return {
    failNext: (pattern: RegExp, fault: Fault): void => void faults.push({ pattern, fault }),
    /** Takes the fault of a request, by its method and path. */
    take: (line: string): Fault | undefined => {
      const index = faults.findIndex(({ pattern }) => pattern.test(line));
      return index < 0 ? undefined : faults.splice(index, 1)[0]?.fault;
    },
  };
}
