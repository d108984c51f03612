/**
 * Why the gateway does not start: one line that says what failed and names the remedy. Thrown by the steps of boot.ts
 * and what they use, logged once by main.ts, which then exits with code 1. Anything else that is thrown is a bug and is
 * logged with its stack.
 */
export class BootError extends Error {
  override readonly name = "BootError";

  /**
   * @param what what failed, in the user's words
   * @param remedy what to do about it; left out only where `what` says so already
   */
  constructor(what: string, remedy?: string, options?: ErrorOptions) {
    super(remedy === undefined ? oneLine(what) : `${oneLine(what)}: ${oneLine(remedy)}`, options);
  }
}

function oneLine(text: string): string {
  return text.replaceAll(/\s+/g, " ").trim();
}
