/**
 * The nats-server that tests, benches and the embedded default use. The finder itself belongs to the gateway, which has
 * to find one where this repository is not; here it is taken from the build and its answer handed on as NATS_SERVER_BIN.
 * Used by run.mjs, after the build.
 */
import { root } from "./child.mjs";

/** The environment with NATS_SERVER_BIN set to a nats-server that is new enough, fetched if need be. */
export async function natsServer(env) {
  const { findNatsServer } = await import(new URL("apps/gateway/dist/nats-server.js", root).href);
  const found = await findNatsServer({ env, tell: (line) => console.error(line) });
  return { ...env, NATS_SERVER_BIN: found.path };
}
