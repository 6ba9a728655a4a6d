/**
 * Names by the pairs of letters that they have, so that a mistyped name is compared with the few that share most of its letters and not with
 * thousands. Letter case is ignored.
 */
export class NameIndex {
  readonly #names: readonly string[]
  readonly #lengths: readonly number[]
  /** The places of the names that have a pair. */
  readonly #places = new Map<string, number[]>()

  constructor(names: Iterable<string>) {
    this.#names = [...new Set(names)]
    this.#lengths = this.#names.map((name, place) => {
      const pairs = pairsOf(name)
      for (const pair of pairs) {
        const places = this.#places.get(pair)
        if (places) places.push(place)
        else this.#places.set(pair, [place])
      }
      return pairs.size
    })
  }

  /** Returns the names that share the largest part of their letters with a name, the most similar first; none for a long one. */
  similar(name: string): string[] {
    if (name.length > maxCompared) return []
    const pairs = pairsOf(name)
    const shared = new Uint8Array(this.#names.length)
    const found: number[] = []
    for (const pair of pairs) {
      for (const place of this.#places.get(pair) ?? []) {
        if (shared[place] === 0) found.push(place)
        shared[place] = (shared[place] as number) + 1
      }
    }
    const percent = (place: number) =>
      Math.floor((200 * (shared[place] as number)) / (pairs.size + (this.#lengths[place] as number)))
    return mostSimilar(found, percent).map((place) => this.#names[place] as string)
  }
}

/** Returns the places with the largest shares, the largest first. They are counted by share and not sorted: there may be thousands. */
function mostSimilar(places: readonly number[], percent: (place: number) => number): number[] {
  const byShare = Array.from({ length: 101 }, (): number[] => [])
  for (const place of places) byShare[percent(place)]?.push(place)
  const found: number[] = []
  for (let share = 100; share >= minPercent && found.length < maxSimilar; share--) {
    found.push(...(byShare[share] as number[]).slice(0, maxSimilar - found.length))
  }
  return found
}

/** Length of the longest name that is compared with others: longer ones are no misspellings. Characters. */
const maxCompared = 80
/** Smallest part of their pairs that two similar names share. Percent. */
const minPercent = 40
/** Maximum number of names that are compared letter by letter. */
const maxSimilar = 32

/** Returns every two characters that follow each other; both ends count as characters. */
function pairsOf(name: string): ReadonlySet<string> {
  const text = `\u0002${name.toLowerCase()}\u0003`
  const pairs = new Set<string>()
  for (let at = 0; at + 2 <= text.length; at++) pairs.add(text.slice(at, at + 2))
  return pairs
}
