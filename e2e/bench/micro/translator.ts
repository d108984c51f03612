// The translator's calls that publishes, bindings and deliveries cost.
import { antichain, FilterIndex, fromSubject, isFault, toFilters, toSubject } from "@amqp/translator";
import { type Figure, nanoseconds } from "./measure.ts";

const BINDINGS = 1_000;

export function measureTranslator(): Figure[] {
  const subject = toSubject("logs", "kern.critical.disk");
  if (isFault(subject)) throw new Error("the example is translatable");
  const index = new FilterIndex<number>();
  const filters: string[] = [];
  for (let i = 0; i < BINDINGS; i++) {
    const made = toFilters("topic", "logs", `a.${i}.*.c${i % 7}`);
    if (isFault(made)) throw new Error("the example is translatable");
    for (const filter of made) {
      index.add(filter, i);
      filters.push(filter);
    }
  }
  const figures: [string, () => unknown][] = [
    ["a routing key of three words to a subject", () => toSubject("logs", "kern.critical.disk")],
    ["the subject back", () => fromSubject(subject)],
    ["a topic binding with `#` to filters", () => toFilters("topic", "logs", "kern.#.disk")],
    [`a look into an index of ${BINDINGS} filters`, () => index.some(subject, () => true)],
    [`the antichain of ${BINDINGS} filters`, () => antichain(filters)],
  ];
  return figures.map(([name, call]) => ({ name, nanoseconds: nanoseconds(call) }));
}
