// The broker under test: our gateway, or the reference that AMQP_REFERENCE_URL names.
// Every file of e2e/clients asks here; the same test then states what either must do. A test file that imports this has
// its gateway started before its first test and stopped after its last. Separate from gateway.ts because a reference
// has no process here to start or stop.
import { afterAll, beforeAll } from "vitest";
import { startGateway } from "./gateway.ts";
import { releaseAll } from "./owned.ts";
import { isReference, REFERENCE_URL } from "./reference.ts";

/** Where to connect. */
export interface Target {
  /** `amqp://guest:guest@host:port`, vhost `/`. */
  readonly url: string;
  readonly host: string;
  readonly port: number;
  /** The gateway's bus; a reference has none. */
  readonly natsUrl?: string;
}

let asked: Promise<Target> | undefined;

/** The target of this test file. */
export function target(): Promise<Target> {
  asked ??= find();
  return asked;
}

async function find(): Promise<Target> {
  const found = REFERENCE_URL === undefined ? await startGateway() : { url: REFERENCE_URL, natsUrl: undefined };
  const { url, natsUrl } = found;
  const { hostname, port } = new URL(url);
  const bus = natsUrl === undefined ? {} : { natsUrl };
  return { url, host: hostname, port: port === "" ? 5672 : Number(port), ...bus };
}

if (!isReference) {
  beforeAll(async () => {
    await target();
  });
  afterAll(releaseAll);
}
