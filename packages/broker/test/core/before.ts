/** Something done in front of each call of a port's method: what a test delays, or breaks. */

/** Calls `before` in front of each call of that method. */
export function before<T extends object>(
  port: T,
  method: string,
  ask: (given: readonly unknown[]) => Promise<void>,
): T {
  return new Proxy(port, {
    get: (target, name) => {
      const member: unknown = Reflect.get(target, name, target);
      if (typeof member !== "function") return member;
      if (name !== method) return member.bind(target);
      return async (...given: unknown[]) => {
        await ask(given);
        return member.apply(target, given) as unknown;
      };
    },
  });
}
