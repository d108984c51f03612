/**
 * The doorkeeper who asks nothing: whoever says a name comes in under it, to the one flat namespace (HIP, Security
 * Considerations). It is the default, and the gateway opens it on loopback only unless told otherwise.
 *
 * Used by: open. Separate because it is one of the modes.
 */
import type { Admission, Credentials, Doorkeeper } from "../core/doorkeeper.ts";
import type { FrontEnd, Verbs } from "../core/verbs.ts";

export class AnonymousDoorkeeper implements Doorkeeper {
  readonly #verbs: Verbs;

  constructor(verbs: Verbs) {
    this.#verbs = verbs;
  }

  admit({ user }: Credentials): Admission {
    return { verbs: this.#verbs, user, vhosts: [], leave: () => undefined };
  }

  join(frontEnd: FrontEnd): void {
    this.#verbs.join(frontEnd);
  }

  leave(frontEnd: FrontEnd): void {
    this.#verbs.leave(frontEnd);
  }
}
