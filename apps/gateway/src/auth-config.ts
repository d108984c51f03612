/**
 * Who may connect, read from the settings. Used by config.ts. Separate because a mistake here opens a door: what belongs
 * to a mode that is not chosen is refused, not ignored.
 */
import { type AuthOptions as BrokerAuth, TOKEN_ALGORITHMS } from "@amqp/broker";
import type { AuthSettingName } from "./auth-settings.ts";
import { type Gathered, type Given, SETTINGS } from "./settings.ts";
import { bad, isLoopback, quoted, required } from "./values.ts";

/** Who may connect. Of `nats` the file is not read yet. */
export type AuthConfig = BrokerAuth | { readonly kind: "nats"; readonly accountsFile: string };

/** Those without a default, and the mode that whoever sets one of them means. */
const MEANT: readonly (readonly [AuthSettingName, AuthConfig["kind"]])[] = [
  ["jwtJwks", "jwt"],
  ["jwtIssuer", "jwt"],
  ["jwtAudience", "jwt"],
  ["natsAccounts", "nats"],
];
/** Logins of the gateway to the bus, which the file of accounts holds. */
const LOGINS = ["natsCreds", "natsUser", "natsPassword", "natsToken", "natsNkey"] as const;

/** @throws BadSetting */
export function readAuth(given: Gathered): AuthConfig {
  const mode = required(given, "auth");
  for (const [name, kind] of MEANT) {
    const alone = given[name];
    if (alone === undefined || mode.text === kind) continue;
    throw bad(alone, `is for AMQP_AUTH=${kind}`, { instead: "set that too, or unset this" });
  }
  if (mode.text === "none") return { kind: "none" };
  if (mode.text === "nats") return readNats(given);
  if (mode.text !== "jwt") throw bad(mode, `is not ${quoted(mode)}`, { instead: "use none, jwt or nats" });
  return {
    kind: "jwt",
    keys: keySet(needed(given, "jwtJwks")),
    issuer: needed(given, "jwtIssuer").text,
    audience: list(needed(given, "jwtAudience")),
    orgClaim: needed(given, "jwtOrgClaim").text,
    algorithms: algorithms(needed(given, "jwtAlgorithms")),
  };
}

function readNats(given: Gathered): AuthConfig {
  if (given.natsUrl === undefined) {
    const about = "the embedded nats-server knows no logins";
    throw bad({ text: "", from: "NATS_URL" }, "is missing", { instead: `AMQP_AUTH=nats needs it, for ${about}` });
  }
  for (const name of LOGINS) {
    const other = given[name];
    if (other === undefined) continue;
    throw bad(other, "is one login, and AMQP_AUTH=nats has one for each account", {
      instead: "write it into the file that AMQP_NATS_ACCOUNTS names, and unset this",
    });
  }
  return { kind: "nats", accountsFile: needed(given, "natsAccounts", "nats").text };
}

function needed(given: Gathered, name: AuthSettingName, mode = "jwt"): Given {
  const found = given[name];
  if (found !== undefined && found.text.trim() !== "") return found;
  const setting = SETTINGS[name];
  throw bad({ text: "", from: setting.env }, "is missing", { instead: `AMQP_AUTH=${mode} needs it: ${setting.about}` });
}

/** Keys that somebody on the way can change are nobody's keys. */
function keySet(given: Given): string {
  if (!/^[a-z][a-z0-9+.-]*:\/\//i.test(given.text)) return given.text;
  const url = URL.parse(given.text);
  const instead = "use an https URL (http only on loopback), or a file";
  // The text itself is not shown: it may hold a password.
  if (url === null) throw bad(given, "holds no URL", { instead });
  if (url.username !== "" || url.password !== "") throw bad(given, "holds a login, which is not sent", { instead });
  if (url.protocol === "https:" || (url.protocol === "http:" && isLoopback(url.hostname))) return given.text;
  throw bad(given, "is no safe way to keys", { instead });
}

function list(given: Given): string[] {
  return given.text
    .split(",")
    .map((text) => text.trim())
    .filter((text) => text !== "");
}

function algorithms(given: Given): string[] {
  const known: readonly string[] = TOKEN_ALGORITHMS;
  const chosen = list(given);
  if (chosen.length > 0 && chosen.every((name) => known.includes(name))) return chosen;
  throw bad(given, `is not ${quoted(given)}`, { instead: `use ${known.join(", ")} (a shared secret lets anybody in)` });
}
