/**
 * Who may connect, read from the settings. Used by config.ts. Separate because a mistake here opens a door: what belongs
 * to a mode that is not chosen is refused, not ignored.
 */
import { type AuthOptions, TOKEN_ALGORITHMS } from "@amqp/broker";
import type { AuthSettingName } from "./auth-settings.ts";
import { type Gathered, type Given, SETTINGS } from "./settings.ts";
import { bad, isLoopback, quoted, required } from "./values.ts";

/** Those without a default: whoever sets one of them means `jwt`. */
const JWT = ["jwtJwks", "jwtIssuer", "jwtAudience"] as const satisfies readonly AuthSettingName[];

/** @throws BadSetting */
export function readAuth(given: Gathered): AuthOptions {
  const mode = required(given, "auth");
  if (mode.text === "none") {
    for (const name of JWT) {
      const alone = given[name];
      if (alone !== undefined) throw bad(alone, "is for AMQP_AUTH=jwt", { instead: "set that too, or unset this" });
    }
    return { kind: "none" };
  }
  if (mode.text !== "jwt") throw bad(mode, `is not ${quoted(mode)}`, { instead: "use none or jwt" });
  return {
    kind: "jwt",
    keys: keySet(needed(given, "jwtJwks")),
    issuer: needed(given, "jwtIssuer").text,
    audience: list(needed(given, "jwtAudience")),
    orgClaim: needed(given, "jwtOrgClaim").text,
    algorithms: algorithms(needed(given, "jwtAlgorithms")),
  };
}

function needed(given: Gathered, name: AuthSettingName): Given {
  const found = given[name];
  if (found !== undefined && found.text.trim() !== "") return found;
  const setting = SETTINGS[name];
  throw bad({ text: "", from: setting.env }, "is missing", { instead: `AMQP_AUTH=jwt needs it: ${setting.about}` });
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
