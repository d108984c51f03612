/**
 * The public door of @amqp/translator: AMQP's exchanges, bindings and keys as NATS subjects and filters, and back.
 * Pure functions over strings, and one index; no dependency, no platform API. What is not listed here is internal.
 */
export { antichain, intersects, isDisjoint, isSubset } from "./antichain.ts";
export { FAULT_OCTETS, type Fault, isFault, truncate } from "./fault.ts";
export { FilterIndex } from "./filter-index.ts";
export { implicitFilter, toFilters } from "./filters.ts";
export { keyMatches, matches } from "./match.ts";
export { checkKind, checkName, type ExchangeKind, NAME_CHARACTERS } from "./names.ts";
export { fromSubject, ROOT, toSubject } from "./subjects.ts";
