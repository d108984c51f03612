/**
 * What a connection holds that has come and is not done: commands in lanes, bodies on their way.
 *
 * Responsibilities: the socket is paused while too much waits in lanes, and what is announced and not complete is
 * bounded before it comes (design §9). Used by: connection, channel, lane. Separate because it counts over all channels.
 */
import { type Refusal, refuse } from "../refusals.ts";
import type { Gate } from "./gate.ts";
import type { LaneListener } from "./lane.ts";
import type { Limits } from "./limits.ts";

export class Pressure implements LaneListener {
  readonly #gate: Gate;
  readonly #limits: Limits;
  #commands = 0;
  #octets = 0;
  #assembling = 0;

  constructor(gate: Gate, limits: Limits) {
    this.#gate = gate;
    this.#limits = limits;
  }

  /** Commands, with so many octets, wait; or (negative) wait no more. */
  waiting(commands: number, octets: number): void {
    this.#commands += commands;
    this.#octets += octets;
    const { laneCommands, laneOctets } = this.#limits;
    if (this.#commands > laneCommands || this.#octets > laneOctets) this.#gate.pause("lane");
    else if (this.#commands <= laneCommands / 2 && this.#octets <= laneOctets / 2) this.#gate.resume("lane");
  }

  /** So many octets of a body are announced: false where that is too much. */
  announced(octets: number): boolean {
    this.#assembling += octets;
    return this.#assembling <= this.#limits.assembling;
  }

  /** The refusal of what was too much. */
  tooMuch(): Refusal {
    return refuse("too-much-assembling", { present: `${this.#limits.assembling}` });
  }

  /** They have come, or are given up. */
  assembled(octets: number): void {
    this.#assembling -= octets;
  }
}
