/** The known name that is most like a mistyped one; undefined when none is near enough to be meant. */
export function nearest(name: string, known: Iterable<string>): string | undefined {
  const written = name.toLowerCase()
  let best: string | undefined
  let least = Math.max(1, Math.floor(name.length / 3)) + 1
  for (const candidate of known) {
    const distance = edits(written, candidate.toLowerCase())
    if (distance < least) {
      least = distance
      best = candidate
    }
  }
  return best
}

/** The end of a message that proposes the nearest known name; empty when there is none. */
export function didYouMean(name: string, known: Iterable<string>): string {
  const meant = nearest(name, known)
  return meant === undefined ? '' : `; did you mean \`${meant}\`?`
}

/** Counts the letters that must be added, removed, changed or swapped with their neighbour (Damerau-Levenshtein). */
function edits(one: string, other: string): number {
  let beforeLast: number[] = []
  let last = Array.from({ length: other.length + 1 }, (_, index) => index)
  for (let row = 1; row <= one.length; row++) {
    const current = [row]
    for (let column = 1; column <= other.length; column++) {
      const same = one[row - 1] === other[column - 1]
      let least = Math.min(at(last, column) + 1, at(current, column - 1) + 1, at(last, column - 1) + (same ? 0 : 1))
      const swapped = row > 1 && column > 1 && one[row - 1] === other[column - 2] && one[row - 2] === other[column - 1]
      if (swapped) least = Math.min(least, at(beforeLast, column - 2) + 1)
      current.push(least)
    }
    beforeLast = last
    last = current
  }
  return at(last, other.length)
}

function at(row: readonly number[], index: number): number {
  return row[index] ?? Number.POSITIVE_INFINITY
}
