/**
 * connection.tune: what is offered, and whether an answer keeps within it (AMQP 1.4.2.6).
 *
 * Used by: handlers/connection. Separate because it is pure. A channel-max or frame-max of 0 means "no limit" and so is
 * above any offer; any heartbeat is taken, as RabbitMQ does.
 */
import { FRAME_MIN_SIZE } from "@amqp/codec";
import { type Refusal, refuse } from "../refusals.ts";

export interface Tuning {
  readonly channelMax: number;
  /** Octets of a whole frame. */
  readonly frameMax: number;
  /** Seconds; 0 = none. */
  readonly heartbeat: number;
}

/** The refusal of this answer, if it is one. */
export function checkTuning(offer: Tuning, answer: Tuning): Refusal | undefined {
  const channelMax = checkHigh("channel_max", offer.channelMax, answer.channelMax);
  if (channelMax !== undefined) return channelMax;
  if (answer.frameMax > 0 && answer.frameMax < FRAME_MIN_SIZE) {
    return refuse("tune-too-low", {
      argument: "frame_max",
      wanted: `${answer.frameMax}`,
      present: `${FRAME_MIN_SIZE}`,
    });
  }
  return checkHigh("frame_max", offer.frameMax, answer.frameMax);
}

function checkHigh(argument: string, offered: number, wanted: number): Refusal | undefined {
  if (wanted > 0 && wanted <= offered) return undefined;
  return refuse("tune-too-high", {
    argument,
    wanted: wanted === 0 ? "no limit (0)" : `${wanted}`,
    present: `${offered}`,
  });
}
