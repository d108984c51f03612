/**
 * A trie over NATS filters that finds the values whose filter matches a subject without a scan: 10,000 queues cost
 * what 100 do. The broker asks it at every mandatory publish (is anything bound?) and at every delivery whose subject
 * is not cached (which bindings hold it?). Separate from `antichain`, whose trie asks which filter holds a filter.
 */

interface Node<T> {
  words: Map<string, Node<T>> | undefined;
  /** The child of `*`. */
  one: Node<T> | undefined;
  /** The values of a `>` that stands here as the last word. */
  rest: Set<T> | undefined;
  /** The values of the filters that end here. */
  values: Set<T> | undefined;
}

/** Pairs of a filter and a value, found by subject. A value may stand under several filters. */
export class FilterIndex<T> {
  #root: Node<T> = newNode();
  #size = 0;
  #nodes = 1;

  /** How many pairs of filter and value are held. */
  get size(): number {
    return this.#size;
  }

  /** How many nodes the trie has, its root included: 1 when it is empty, since removing prunes. */
  get nodes(): number {
    return this.#nodes;
  }

  /** Adds a pair; false if it was there already. */
  add(filter: string, value: T): boolean {
    const words = filter.split(".");
    const isRest = words.at(-1) === ">";
    if (isRest) words.pop();
    let node = this.#root;
    for (const word of words) node = this.#child(node, word);
    const place = isRest ? "rest" : "values";
    const values = node[place] ?? new Set<T>();
    node[place] = values;
    if (values.has(value)) return false;
    values.add(value);
    this.#size++;
    return true;
  }

  /** Removes a pair and every node that no other pair needs; false if it was not there. */
  remove(filter: string, value: T): boolean {
    const removed = this.#remove(this.#root, filter.split("."), 0, value);
    if (removed) this.#size--;
    return removed;
  }

  /**
   * Whether the predicate holds for some value whose filter matches the subject. It stops at the first; a value under
   * two matching filters may be asked twice. The predicate must not change the index.
   */
  some(subject: string, predicate: (value: T) => boolean): boolean {
    return some(this.#root, subject.split("."), 0, predicate);
  }

  /** Adds to `into` every value whose filter matches the subject, once each, and returns it. */
  collect(subject: string, into: Set<T>): Set<T> {
    this.some(subject, (value) => {
      into.add(value);
      return false;
    });
    return into;
  }

  #child(node: Node<T>, word: string): Node<T> {
    const found = childOf(node, word);
    if (found !== undefined) return found;
    const child: Node<T> = newNode();
    this.#nodes++;
    if (word === "*") {
      node.one = child;
    } else {
      node.words ??= new Map();
      node.words.set(word, child);
    }
    return child;
  }

  #remove(node: Node<T>, words: readonly string[], position: number, value: T): boolean {
    const word = words[position];
    if (word === undefined) {
      const removed = node.values?.delete(value) ?? false;
      if (node.values?.size === 0) node.values = undefined;
      return removed;
    }
    if (word === ">" && position === words.length - 1) {
      const removed = node.rest?.delete(value) ?? false;
      if (node.rest?.size === 0) node.rest = undefined;
      return removed;
    }
    const child = childOf(node, word);
    if (child === undefined || !this.#remove(child, words, position + 1, value)) return false;
    if (isEmpty(child)) {
      this.#nodes--;
      if (word === "*") node.one = undefined;
      else node.words?.delete(word);
      if (node.words?.size === 0) node.words = undefined;
    }
    return true;
  }
}

function newNode<T>(): Node<T> {
  return { words: undefined, one: undefined, rest: undefined, values: undefined };
}

function childOf<T>(node: Node<T>, word: string): Node<T> | undefined {
  return word === "*" ? node.one : node.words?.get(word);
}

function isEmpty<T>(node: Node<T>): boolean {
  return node.words === undefined && node.one === undefined && node.rest === undefined && node.values === undefined;
}

function some<T>(node: Node<T>, words: readonly string[], position: number, predicate: (value: T) => boolean): boolean {
  const word = words[position];
  if (word === undefined) return someOf(node.values, predicate);
  if (someOf(node.rest, predicate)) return true;
  const same = node.words?.get(word);
  if (same !== undefined && some(same, words, position + 1, predicate)) return true;
  return node.one !== undefined && some(node.one, words, position + 1, predicate);
}

function someOf<T>(values: Set<T> | undefined, predicate: (value: T) => boolean): boolean {
  if (values === undefined) return false;
  for (const value of values) if (predicate(value)) return true;
  return false;
}
