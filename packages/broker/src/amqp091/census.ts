/**
 * Who is connected, over all ports of a process: how many, from which addresses, as whom, and who has only begun.
 *
 * Responsibilities: the limits of connections beside each other (design §9) and the counters of what was refused.
 * Used by: server (one a process), connections. Separate because a connection knows nothing of the others beside it,
 * and a port nothing of the other ports.
 *
 *   arrived ── entered ──► open ── gone        arrived and never entered: the oldest goes where there are too many
 */
import { type Refusal, type RefusalName, refuse } from "../refusals.ts";
import type { Limits } from "./limits.ts";

/** What the census knows of a connection. */
export interface Counted {
  /** Whom its address stands for, as {@link originOf} says. */
  readonly origin: string;
  /** Its handshake has to make room for those that come. */
  drop(reason: string): void;
}

/** Numbers since the start, and of now. */
export interface Counters {
  /** Sockets that are open now, connections that are open now, and those whose handshake goes on. */
  readonly sockets: number;
  readonly connections: number;
  readonly handshakes: number;
  /** Since the start: sockets accepted, connections opened, logins that failed, handshakes that made room for others. */
  readonly accepted: number;
  readonly opened: number;
  readonly failedLogins: number;
  readonly displaced: number;
  /** Since the start, by the name of the refusal: what closed a channel or a connection. */
  readonly refusals: Readonly<Partial<Record<RefusalName, number>>>;
}

export class Census {
  readonly #sockets: Set<Counted> = new Set<Counted>();
  /** In the order in which they came. */
  readonly #handshakes: Set<Counted> = new Set<Counted>();
  readonly #origins: Map<string, number> = new Map<string, number>();
  readonly #users: Map<string, number> = new Map<string, number>();
  readonly #refusals: Map<RefusalName, number> = new Map<RefusalName, number>();
  #open = 0;
  #accepted = 0;
  #opened = 0;
  #failedLogins = 0;
  #displaced = 0;

  /** A socket was accepted; false where there are too many of all kinds. */
  arrived(connection: Counted, limits: Limits): boolean {
    this.#accepted++;
    if (this.#handshakes.size >= limits.handshakes) {
      const [oldest] = this.#handshakes;
      this.#displaced++;
      if (oldest !== undefined) this.#handshakes.delete(oldest);
      oldest?.drop("its handshake had to make room for others");
    }
    // Those that are being closed count too: a peer that answers nothing keeps its socket for a while.
    if (this.#sockets.size >= limits.connections + limits.handshakes) return false;
    this.#sockets.add(connection);
    this.#handshakes.add(connection);
    return true;
  }

  /** The handshake is over, whichever way. */
  settled(connection: Counted): void {
    this.#handshakes.delete(connection);
  }

  /** The socket is closed. */
  gone(connection: Counted): void {
    this.#handshakes.delete(connection);
    this.#sockets.delete(connection);
  }

  /** May one more be opened, from there and by that user? If so it counts until what is returned is called. */
  enter(connection: Counted, user: string, limits: Limits): Refusal | (() => void) {
    const { origin } = connection;
    const { connections, connectionsPerAddress, connectionsPerUser } = limits;
    if (this.#open >= connections) return refuse("too-many-connections", { present: `${connections}` });
    if ((this.#origins.get(origin) ?? 0) >= connectionsPerAddress) {
      return refuse("too-many-from-address", { present: `${connectionsPerAddress}` });
    }
    if ((this.#users.get(user) ?? 0) >= connectionsPerUser) {
      return refuse("too-many-of-user", { present: `${connectionsPerUser}` });
    }
    this.#opened++;
    this.#count(origin, user, 1);
    return () => this.#count(origin, user, -1);
  }

  loginFailed(): void {
    this.#failedLogins++;
  }

  refused(name: RefusalName): void {
    this.#refusals.set(name, (this.#refusals.get(name) ?? 0) + 1);
  }

  counters(): Counters {
    return {
      sockets: this.#sockets.size,
      connections: this.#open,
      handshakes: this.#handshakes.size,
      accepted: this.#accepted,
      opened: this.#opened,
      failedLogins: this.#failedLogins,
      displaced: this.#displaced,
      refusals: Object.fromEntries(this.#refusals),
    };
  }

  #count(origin: string, user: string, change: 1 | -1): void {
    this.#open += change;
    add(this.#origins, origin, change);
    add(this.#users, user, change);
  }
}

function add(counts: Map<string, number>, key: string, change: 1 | -1): void {
  const count = (counts.get(key) ?? 0) + change;
  if (count === 0) counts.delete(key);
  else counts.set(key, count);
}

/**
 * Whom a peer's `address:port` stands for: an IPv4 address also where it is written as IPv6, and of IPv6 the first 64
 * bits, for whoever has one such address has them all.
 */
export function originOf(remote: string): string {
  const address = remote.slice(0, remote.lastIndexOf(":"));
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1];
  if (mapped !== undefined) return mapped;
  if (!address.includes(":")) return address;
  const [head = "", tail] = address.replace(/%.*$/, "").split("::");
  const front = head === "" ? [] : head.split(":");
  const back = tail === undefined || tail === "" ? [] : tail.split(":");
  const zeros = tail === undefined ? 0 : Math.max(0, 8 - front.length - back.length);
  const groups = [...front, ...Array.from({ length: zeros }, () => "0"), ...back];
  return `${groups.slice(0, 4).join(":")}::/64`;
}
