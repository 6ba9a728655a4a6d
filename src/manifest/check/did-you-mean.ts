/** The known name that is most like a mistyped one; undefined when none is near enough to be meant: within a third of its letters, or `most`. */
export function nearest(
  name: string,
  known: Iterable<string>,
  most = Math.max(1, Math.floor(name.length / 3)),
): string | undefined {
  const written = name.toLowerCase()
  let best: string | undefined
  let least = most + 1
  for (const candidate of known) {
    if (Math.abs(candidate.length - name.length) >= least) continue
    const distance = edits(written, candidate.toLowerCase(), least)
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

/**
 * Counts the letters that must be added, removed, changed or swapped with their neighbour (Damerau-Levenshtein); of `most` or more, any number
 * that is not less: a name is compared with thousands of others.
 */
function edits(one: string, other: string, most: number): number {
  const width = other.length + 1
  let beforeLast = new Uint32Array(width)
  let last = new Uint32Array(width)
  let current = new Uint32Array(width)
  for (let column = 0; column < width; column++) last[column] = column
  for (let row = 1; row <= one.length; row++) {
    const letter = one.charCodeAt(row - 1)
    let leastOfRow = row
    let left = row
    current[0] = row
    for (let column = 1; column < width; column++) {
      const above = last[column] as number
      const changed = (last[column - 1] as number) + (letter === other.charCodeAt(column - 1) ? 0 : 1)
      left = Math.min(above + 1, left + 1, changed)
      const swapped =
        row > 1 &&
        column > 1 &&
        letter === other.charCodeAt(column - 2) &&
        one.charCodeAt(row - 2) === other.charCodeAt(column - 1)
      if (swapped) left = Math.min(left, (beforeLast[column - 2] as number) + 1)
      current[column] = left
      if (left < leastOfRow) leastOfRow = left
    }
    // A swap may skip this row, and adds one.
    if (leastOfRow > most) return leastOfRow
    ;[beforeLast, last, current] = [last, current, beforeLast]
  }
  return last[other.length] as number
}
