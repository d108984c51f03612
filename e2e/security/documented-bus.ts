// The bus that docs/security.md documents for the mode `nats`, word by word, on a real nats-server, and what a gateway
// is told of it. Used by the tests of that mode. Separate because its users come and go under gateways that are there.
import { writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { type ConnectionOptions, connect, type NatsConnection } from "@nats-io/transport-node";
import { type NatsServer, startNats } from "../harness/nats-server.ts";
import { temporaryFolder } from "../harness/owned.ts";
import { documented } from "./documented.ts";

export const app = { user: "app", password: "change-me-app" };
export const publisher = { user: "publisher", password: "change-me-publisher" };
export const consumer = { user: "consumer", password: "change-me-consumer" };
export const umbrella = { user: "umbrella-app", password: "change-me-umbrella-app" };

/** What the document does not hold: an account that is not served, a token, a user to be removed. */
const MORE = `
  EVIL { jetstream: enabled, users: [{ user: evil, password: evil }] }
  system { users: [{ user: sys, password: sys }] }
}
system_account: system
`;

export class DocumentedBus {
  readonly folder: string;
  readonly server: NatsServer;
  /** Of a gateway on it. Refused logins are what is tested: the address is not to be kept waiting for them. */
  readonly env: Readonly<Record<string, string>>;

  private constructor(folder: string, server: NatsServer, accounts: string) {
    this.folder = folder;
    this.server = server;
    this.env = { NATS_URL: server.url, AMQP_AUTH: "nats", AMQP_NATS_ACCOUNTS: accounts, AMQP_LOGIN_DELAY: "0" };
  }

  static async start(): Promise<DocumentedBus> {
    const folder = temporaryFolder("amqp-security");
    const accounts = join(folder, "accounts.json");
    writeFileSync(accounts, documented("json", "accounts.json"));
    writeFileSync(join(folder, "users.conf"), configuration());
    // An include is relative to the file that includes it: another folder beside this one.
    const server = await startNats({ conf: `include "../${basename(folder)}/users.conf"` });
    return new DocumentedBus(folder, server, accounts);
  }

  /** A program of somebody's own on it. */
  dial(options: ConnectionOptions): Promise<NatsConnection> {
    return connect({ servers: this.server.url, ...options });
  }

  /** Gives ACME this user beside the documented ones, until the next call. */
  addUser(user?: string): void {
    writeFileSync(join(this.folder, "users.conf"), configuration(user));
    process.kill(this.server.pid, "SIGHUP");
  }
}

function configuration(user?: string): string {
  const block = documented("conf", "nats.conf").trimEnd();
  if (!block.endsWith("}")) throw new Error("the documented configuration ends with its accounts");
  const text = block.slice(0, -1);
  return (user === undefined ? text : text.replace("users: [", `users: [ ${user}`)) + MORE;
}
