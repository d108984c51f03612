/**
 * The doorkeeper whose list is the bus's: the credentials of a login are the credentials of its connections to the bus,
 * and the account that these belong to is the tenant (HIP, Security Considerations).
 *
 * Responsibilities: which kind of credentials they are, the account they belong to and its proof, and one place on the
 * bus for all connections of one login. Used by: open-accounts. Separate because it is one of the modes.
 */
import { createHash } from "node:crypto";
import {
  AuthorizationError,
  createInbox,
  type NatsConnection,
  UserAuthenticationExpiredError,
} from "@nats-io/nats-core";
import type { BusErrorShape } from "../core/bus.ts";
import type { Admission, Credentials, Doorkeeper, Refused } from "../core/doorkeeper.ts";
import type { Health } from "../core/health.ts";
import { uniqueId } from "../core/names.ts";
import type { FrontEnd, Verbs } from "../core/verbs.ts";
import { violationOf } from "../nats/rights.ts";
import { type Sharable, Shared } from "./shared.ts";

/** A login to the bus. */
export type BusLogin =
  | { readonly kind: "user"; readonly user: string; readonly password: string }
  | { readonly kind: "token"; readonly token: string }
  | { readonly kind: "jwt"; readonly jwt: string; readonly seed: string };

/** The two connections to the bus that one login has. */
export interface BusPair {
  readonly publishing: NatsConnection;
  readonly delivering: NatsConnection;
  /** Once, in order. */
  close(): Promise<void>;
}

/** An account as the gateway is in it. */
export interface Account {
  /** A connection of the gateway's own login. */
  readonly connection: NatsConnection;
  /** A place in it for a login of its own; `lost` is told when that login is good no more. */
  open(pair: BusPair, lost: () => void): Promise<Place>;
}

/** A login's place in its account. */
export interface Place extends Sharable {
  readonly verbs: Verbs;
}

interface Seat extends Place {
  readonly account: string;
}

/** Says that the bus does not let a login in. Holds no secret. */
class NotLetIn extends Error {}

/** The bus could not be asked. */
class NotAsked extends Error implements BusErrorShape {
  override readonly name: string = "NotAsked";
  readonly code: number = 0;
  readonly timeout: boolean = true;
}

/** Milliseconds for the bus to answer, each time. */
const PATIENCE = 2_000;
/** Milliseconds for another answer to come, after which there is none. */
const OTHERS = 300;

export class NatsDoorkeeper implements Doorkeeper {
  readonly #accounts: ReadonlyMap<string, Account>;
  readonly #dial: (login: BusLogin) => Promise<BusPair>;
  readonly #health: Health;
  readonly #seats: Shared<Seat> = new Shared<Seat>(0);

  constructor(accounts: ReadonlyMap<string, Account>, dial: (login: BusLogin) => Promise<BusPair>, health: Health) {
    this.#accounts = accounts;
    this.#dial = dial;
    this.#health = health;
  }

  async admit({ user, password }: Credentials): Promise<Admission | Refused> {
    // The bus may have a user for those who say nothing (`no_auth_user`).
    if (password === "") return { refused: "there is no password" };
    const login = toLogin(user, password);
    if (isLoginRefused(login)) return login;
    // What is remembered is not what was said.
    const key = createHash("sha256")
      .update(JSON.stringify([user, password]))
      .digest("base64");
    try {
      const { what, leave } = await this.#seats.enter(key, () => this.#seat(key, login));
      return { verbs: what.verbs, user: userOf(login), vhosts: [what.account], leave };
    } catch (error) {
      if (error instanceof NotLetIn) return { refused: error.message };
      throw error;
    }
  }

  join(frontEnd: FrontEnd): void {
    this.#health.join(frontEnd);
  }

  leave(frontEnd: FrontEnd): void {
    this.#health.leave(frontEnd);
  }

  /** After the connections are gone: closes those to the bus. */
  async close(): Promise<void> {
    await this.#seats.close();
  }

  async #seat(key: string, login: BusLogin): Promise<Seat> {
    const pair = await this.#dial(login).catch((error: unknown) => {
      const isNo = error instanceof AuthorizationError || error instanceof UserAuthenticationExpiredError;
      if (isNo) throw new NotLetIn(`the bus refuses this login: ${error.message}`);
      throw new NotAsked("the bus cannot be reached with a client's login", { cause: error });
    });
    try {
      const account = await this.#accountOf(pair.publishing);
      const place = await account.open(pair, () => this.#seats.drop(key));
      return {
        account: account.name,
        verbs: place.verbs,
        holdsTransient: false,
        close: async () => {
          await place.close();
          await pair.close();
        },
      };
    } catch (error) {
      await pair.close();
      const violation = violationOf(error);
      if (violation !== undefined) {
        throw new NotLetIn(`the bus does not permit this login the ${violation.operation} ${violation.subject}`);
      }
      throw error instanceof NotLetIn ? error : new NotAsked("a login found no place on the bus", { cause: error });
    }
  }

  /**
   * The account that a connection belongs to. What it is told may be another client's word, who listens on that subject
   * in the same account: so everybody must say the same, and it is proved, by a secret that only somebody inside that
   * account can have sent it.
   */
  async #accountOf(connection: NatsConnection): Promise<Account & { readonly name: string }> {
    const answers = await connection.requestMany("$SYS.REQ.USER.INFO", "", {
      strategy: "stall",
      maxWait: PATIENCE,
      stall: OTHERS,
    });
    const said = new Set<string>();
    for await (const answer of answers) {
      const { data } = answer.json<{ data?: { account?: unknown; account_name?: unknown } }>();
      said.add(JSON.stringify([data?.account, data?.account_name]));
    }
    const [only = "[]", another] = said;
    if (another !== undefined) throw new NotLetIn("there are two answers to what account this login is in");
    for (const name of JSON.parse(only) as readonly unknown[]) {
      if (typeof name !== "string") continue;
      const account = this.#accounts.get(name);
      if (account === undefined) continue;
      if (await isIn(account.connection, connection)) return { ...account, name };
      throw new NotLetIn("the bus names an account that this login is not in");
    }
    throw new NotLetIn("the login's account is not in AMQP_NATS_ACCOUNTS");
  }
}

/** Whether two connections are in the same account: what one sends to a subject that nobody knows reaches the other. */
async function isIn(inside: NatsConnection, connection: NatsConnection): Promise<boolean> {
  const inbox = createInbox();
  const secret = uniqueId();
  let timer: NodeJS.Timeout | undefined;
  try {
    return await new Promise<boolean>((resolve, reject) => {
      timer = setTimeout(() => resolve(false), PATIENCE);
      connection.subscribe(inbox, {
        max: 1,
        callback: (error, message) => {
          if (error === null) resolve(message.string() === secret);
          else reject(error);
        },
      });
      connection.flush().then(() => inside.publish(inbox, secret), reject);
    });
  } finally {
    clearTimeout(timer);
  }
}

/** A token is a password without a user; a user's JWT comes with its seed. */
function toLogin(user: string, password: string): BusLogin | Refused {
  if (user === "") return { kind: "token", token: password };
  if (!/^eyJ[\w-]*\.[\w-]+\.[\w-]+$/.test(user)) return { kind: "user", user, password };
  if (!/^SU[A-Z2-7]{56}$/.test(password)) return { refused: "the password beside a user's JWT is not its seed" };
  return { kind: "jwt", jwt: user, seed: password };
}

function isLoginRefused(login: BusLogin | Refused): login is Refused {
  return "refused" in login;
}

/** What a user-id must equal: the user's name, and of a JWT the key that it is of. A token has no name. */
function userOf(login: BusLogin): string {
  if (login.kind === "user") return login.user;
  if (login.kind === "token") return "";
  // The bus has checked it.
  const claims: unknown = JSON.parse(Buffer.from(login.jwt.split(".")[1] ?? "", "base64url").toString());
  const { sub } = claims as { readonly sub?: unknown };
  return typeof sub === "string" ? sub : "";
}
