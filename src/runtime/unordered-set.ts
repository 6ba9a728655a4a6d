/** Item of an unordered set: `place` belongs to the set, -1 outside of it. */
export type Listed = { place: number }

/**
 * Set of running work, in no order: items come and go all the time. In a Set of them, V8 would link each table that it outgrows to the next
 * one: once a table is old, all that is in the later ones grows old with it, though it has long been deleted.
 */
export class UnorderedSet<Item extends Listed> {
  readonly #items: Item[] = []

  get size(): number {
    return this.#items.length
  }

  add(item: Item): void {
    if (item.place !== -1) return
    item.place = this.#items.length
    this.#items.push(item)
  }

  delete(item: Item): void {
    const { place } = item
    if (place === -1) return
    item.place = -1
    const last = this.#items.pop() as Item
    if (last === item) return
    this.#items[place] = last
    last.place = place
  }

  /** Iterates over the items of this moment: they may be deleted meanwhile. */
  [Symbol.iterator](): ArrayIterator<Item> {
    return [...this.#items].values()
  }
}
