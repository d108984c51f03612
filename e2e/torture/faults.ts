// When what is done to which process: a schedule that the seed decides, played against the processes. Separate from
// processes.ts so that the same blows can be dealt by a test at moments of its own.
import type { Processes } from "./processes.ts";
import type { Random } from "./random.ts";
import type { World } from "./world.ts";

/** What may be done. */
export type FaultKind = "kill" | "stop" | "restart" | "bus";

/** `--faults`: `gateway` is its three, `bus` the bus's one; each may also be named alone. */
export function parseFaults(text: string): FaultKind[] {
  const kinds = new Set<FaultKind>();
  for (const word of text.split(",").filter((each) => each !== "" && each !== "none")) {
    if (word === "gateway") for (const kind of ["kill", "stop", "restart"] as const) kinds.add(kind);
    else if (word === "kill" || word === "stop" || word === "restart" || word === "bus") kinds.add(word);
    else throw new Error(`${word} is no fault: use gateway, bus, kill, stop, restart or none`);
  }
  return [...kinds];
}

/** Deals one blow after another until told to stop; resolves when every process is back. */
export async function dealFaults(
  processes: Processes,
  random: Random,
  kinds: readonly FaultKind[],
  world: World,
): Promise<void> {
  const { gateways } = world;
  if (kinds.length === 0) return;
  while (!world.isStopping) {
    await world.pause(random.integer(1_500, 6_000));
    const gateway = random.integer(0, gateways - 1);
    const blows = [blow(random.pick(kinds), gateway)];
    // Now and then two at once; never two on one gateway, which would be one.
    if (random.chance(0.25)) blows.push(blow(random.pick(kinds), (gateway + 1) % gateways));
    if (world.isStopping) return;
    const struck = new Set<string>();
    await Promise.all(blows.filter(({ what }) => !struck.has(what) && struck.add(what)).map(({ deal }) => deal()));
  }

  function strikeBus(away: number): Promise<void> {
    return processes.strikeBus(away, random.next());
  }

  function blow(kind: FaultKind, gateway: number): { readonly what: string; readonly deal: () => Promise<void> } {
    const short = random.integer(0, 3_000);
    const long = random.chance(0.5) ? random.integer(200, 2_500) : random.integer(3_500, 12_000);
    switch (kind) {
      case "kill":
        return { what: `gateway ${gateway}`, deal: () => processes.kill(gateway, short) };
      case "stop":
        return { what: `gateway ${gateway}`, deal: () => processes.freeze(gateway, long) };
      case "restart":
        return { what: `gateway ${gateway}`, deal: () => processes.restart(gateway) };
      case "bus":
        return { what: "bus", deal: () => strikeBus(random.chance(0.5) ? short : long / 2) };
    }
  }
}
