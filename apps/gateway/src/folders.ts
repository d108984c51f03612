/**
 * The per-user folders: where the embedded server keeps its messages when AMQP_DATA_DIR names no other place, and where
 * a fetched nats-server is kept. Pure, so that every platform's rule is tested on any. Used by config.ts and
 * nats-server.ts.
 */
import { posix, win32 } from "node:path";

/** What the rules depend on: the environment, `process.platform` and `os.homedir()`. */
export interface Machine {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly platform: NodeJS.Platform;
  readonly home: string;
}

const NAME = "amqp-gateway";

/** The folder of the embedded server's messages: XDG's data home, or what macOS and Windows have for it. */
export function dataFolder({ env, platform, home }: Machine): string {
  if (platform === "win32") return win32.join(env.LOCALAPPDATA || win32.join(home, "AppData", "Local"), NAME, "Data");
  if (platform === "darwin") return posix.join(home, "Library", "Application Support", NAME);
  return posix.join(absolute(env.XDG_DATA_HOME) ?? posix.join(home, ".local", "share"), NAME);
}

/** The folder of fetched nats-servers, which may be deleted at any time. */
export function cacheFolder({ env, platform, home }: Machine): string {
  if (platform === "win32") return win32.join(env.LOCALAPPDATA || win32.join(home, "AppData", "Local"), NAME, "Cache");
  if (platform === "darwin") return posix.join(home, "Library", "Caches", NAME);
  return posix.join(absolute(env.XDG_CACHE_HOME) ?? posix.join(home, ".cache"), NAME);
}

/** The XDG specification has relative paths ignored. */
function absolute(path: string | undefined): string | undefined {
  return path !== undefined && posix.isAbsolute(path) ? path : undefined;
}
