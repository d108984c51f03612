// All laws over one history, and the part of it that concerns one breach. Used by the torture's run and by the laws' own
// tests. Separate so that a history that was written to a file can be judged again.
import type { History, Operation } from "../history.ts";
import {
  allMissing,
  byId,
  everyConfirmedArrives,
  lifeIsNotRevived,
  nothingStrays,
  returnsAreTrue,
  whatStandsIsFound,
} from "./delivery.ts";
import { handedBackComesAgain } from "./handed-back.ts";
import { Losses } from "./lives.ts";
import { exclusiveIsExclusive, ownersGone } from "./ownership.ts";
import { Purges, purgeCountsWhatItTook, purgedIsGone } from "./purge.ts";
import { nothingIsLeft, orderIsKept, secondIsFlagged, settledIsSettled } from "./settlement.ts";
import { keyMatches, Spans } from "./spans.ts";
import type { Violation } from "./violation.ts";

/** Every breach of every law. */
export function check(recorded: History): Violation[] {
  const history = { ...recorded, operations: [...recorded.operations, ...ownersGone(recorded)] };
  const spans = new Spans(history);
  const published = byId(history.publishes);
  const [purges, losses] = [new Purges(history), new Losses(history, published)];
  const missing = allMissing(history, spans);
  return [
    ...history.complaints.map(({ text }) => ({ law: "actors", text })),
    ...everyConfirmedArrives(missing, purges, losses),
    ...nothingStrays(history, spans),
    ...lifeIsNotRevived(history),
    ...returnsAreTrue(history, spans),
    ...whatStandsIsFound(history, spans),
    ...settledIsSettled(history),
    ...handedBackComesAgain(history, purges, losses),
    ...secondIsFlagged(history),
    ...orderIsKept(history),
    ...purgedIsGone(history, purges, published),
    ...purgeCountsWhatItTook(
      purges,
      missing.filter(({ queue, publish }) => !losses.mayExplain(queue, publish)),
    ),
    ...exclusiveIsExclusive(recorded),
    ...nothingIsLeft(history),
  ];
}

/** The events that a breach is about, one a line, in the order of time; times are seconds since the run's beginning. */
export function explain(history: History, { message, queue, at }: Violation): string[] {
  const begin = Math.min(...history.operations.map(({ sent }) => sent), ...history.faults.map(({ from }) => from));
  const publish = history.publishes.find(({ id }) => id === message);
  const lines: { readonly at: number; readonly text: string }[] = [];
  const span = (from: number, until: number | undefined): string =>
    `${seconds(from - begin)}–${until === undefined ? "?" : seconds(until - begin)}`;
  if (publish !== undefined) {
    const { id, channel, place, exchange, routingKey, mandatory, gateway, sent, answered, outcome } = publish;
    const text = `published ${id} (${channel} #${place}) to '${exchange}' '${routingKey}'${mandatory ? " mandatory" : ""} at gateway ${gateway}: ${outcome}`;
    lines.push({ at: sent, text: `${span(sent, answered)} ${text}` });
  }
  const times: number[] = [publish?.sent ?? [], at ?? []].flat();
  for (const each of history.deliveries) {
    if (each.id !== message || each.queue !== queue) continue;
    times.push(each.at, each.settledAt ?? each.at);
    const end = `${each.settlement ?? "held"} ${each.settledAt === undefined ? "" : seconds(each.settledAt - begin)} synced ${each.syncedAt === undefined ? "never" : seconds(each.syncedAt - begin)}`;
    const text = `delivered to ${each.consumer} at gateway ${each.gateway}${each.redelivered ? " redelivered" : ""}; ${end}`;
    lines.push({ at: each.at, text: `${seconds(each.at - begin)} ${text}` });
  }
  const [first, last] = [Math.min(...times) - 10_000, Math.max(...times) + 10_000];
  for (const each of history.operations) {
    const { kind, exchange, key, gateway, sent, answered, outcome, code } = each;
    const isAboutQueue =
      queue !== undefined &&
      each.queue === queue &&
      (each.asker !== undefined || !["passive", "get", "consume"].includes(kind));
    const isAboutExchange = kind === "delete-exchange" && exchange === publish?.exchange;
    const isBinding = kind === "bind" || kind === "unbind";
    if (!isAboutQueue && !isAboutExchange) continue;
    if (isBinding && publish !== undefined) {
      if (exchange !== publish.exchange) continue;
      if (!keyMatches(history.exchanges[exchange], key, publish.routingKey)) continue;
    } else if (times.length > 0 && (sent > last || (answered ?? sent) < first)) continue;
    const what = [each.queue, exchange, key].filter((word) => word !== "").join(" ");
    lines.push({
      at: sent,
      text: `${span(sent, answered)} ${kind} ${what} ${by(each)}at gateway ${gateway}: ${outcome} ${code ?? ""}`,
    });
  }
  for (const { kind, target, from, until } of history.faults) {
    if (times.length > 0 && (from > last || until < first)) continue;
    lines.push({ at: from, text: `${span(from, until)} ${kind} ${target < 0 ? "" : target}` });
  }
  return lines.sort((a, b) => a.at - b.at).map(({ text }) => text.trimEnd());
}

function by({ asker }: Operation): string {
  return asker === undefined ? "" : `by ${asker} `;
}

function seconds(milliseconds: number): string {
  return (milliseconds / 1000).toFixed(3);
}
