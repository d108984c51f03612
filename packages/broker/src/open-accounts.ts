/**
 * Opening a broker whose logins are the bus's: one home an account, led with the gateway's own login, and one seat a
 * login beside it, which publishes, pulls and settles over the login's own connections.
 *
 * Responsibilities: as open.ts, for several accounts. Used by: the package's index. Separate because a seat is a replica
 * like any other to the fleet (its consumers and what they hold are counted, swept and fenced as every replica's are),
 * but one that never leads, and whose data path may do only what its login may.
 */
import { type Account, type BusLogin, type BusPair, NatsDoorkeeper } from "./auth/nats.ts";
import { PermittedVerbs } from "./auth/permitted-verbs.ts";
import { BusListeners } from "./core/bus-listeners.ts";
import { Health } from "./core/health.ts";
import { openGround } from "./ground.ts";
import { JetStreamBus } from "./nats/bus.ts";
import { NatsRights } from "./nats/rights.ts";
import {
  type BrokerHandle,
  booting,
  handleOf,
  logOf,
  losing,
  openPlace,
  orClose,
  type Place,
  type PlaceOptions,
} from "./place.ts";

export type { BusLogin, BusPair } from "./auth/nats.ts";

export interface AccountsOptions extends PlaceOptions {
  /** The gateway's own connections in each account, by the account's name or public key. They stay the caller's. */
  readonly accounts: ReadonlyMap<string, Pick<BusPair, "publishing" | "delivering">>;
  /** Connects to the bus as that login; rejects with the client's own error where the bus refuses it. */
  dial(login: BusLogin): Promise<BusPair>;
}

interface Home {
  readonly name: string;
  readonly account: Account;
  readonly place: Place;
  close(): Promise<void>;
}

/** As `openBroker`; every account is opened before anybody is served. */
export async function openAccounts(options: AccountsOptions): Promise<BrokerHandle> {
  const { accounts, log } = options;
  const { lost, lose } = losing();
  const homes: Home[] = [];
  const close = async (): Promise<void> => {
    await Promise.all(homes.map((home) => home.close()));
  };
  try {
    for (const [name, connections] of accounts) homes.push(await openHome(options, name, connections, lose));
  } catch (error) {
    await close();
    throw error;
  }
  const [first] = homes;
  if (first === undefined) throw new Error("there is no account to serve: name one in AMQP_NATS_ACCOUNTS");
  // All accounts are on one bus: what one of them hears of it is true of the others.
  const { listener, busTimeout } = first.place;
  const health = new Health(log, busTimeout);
  listener.join(health);
  const doorkeeper = new NatsDoorkeeper(
    new Map(homes.map(({ name, account }) => [name, account])),
    (login) => options.dial(login),
    health,
  );
  return handleOf(doorkeeper, log, lost, async () => {
    listener.leave(health);
    await doorkeeper.close();
    await close();
  });
}

/** An account, with the gateway's own login: its stream, its bucket, its mirror, and its leader if nobody else leads. */
async function openHome(
  options: AccountsOptions,
  name: string,
  connections: Pick<BusPair, "publishing" | "delivering">,
  lose: (error: Error) => void,
): Promise<Home> {
  const log = logOf(options.log, { account: name });
  const { place, kept, bucketName, peers } = await openGround(options, connections, log, lose);
  const { stream, domain } = kept;
  const { publishing } = connections;
  const { close } = await orClose(booting(openPlace(place)), place.bus);

  const open: Account["open"] = async (pair, lost) => {
    const seatListener = new BusListeners();
    let end: (why: string) => void = () => undefined;
    const seatBus = new JetStreamBus({
      publishing: pair.publishing,
      delivering: pair.delivering,
      api: publishing,
      ...kept,
      listener: seatListener,
      denied: (subject) => end(`the bus does not permit this login to write '${subject}' any more`),
    });
    const rights = new NatsRights({ connection: pair.publishing, stream, bucket: bucketName, domain });
    const opening = openPlace({ ...place, bus: seatBus, peers: peers(), listener: seatListener, follows: true });
    const seat = await orClose(opening, seatBus);
    end = (why) => {
      end = () => undefined;
      lost();
      seat.health.closing(why);
    };
    for (const connection of [pair.publishing, pair.delivering]) {
      void connection.closed().then(() => end("the bus has closed the connection of this login"));
    }
    return {
      verbs: new PermittedVerbs(seat.broker, rights),
      holdsTransient: false,
      close: async () => {
        end = () => undefined;
        await seat.close();
        await seatBus.close();
      },
    };
  };
  return {
    name,
    account: { connection: publishing, open },
    place,
    close: async () => {
      await close();
      await place.bus.close();
    },
  };
}
