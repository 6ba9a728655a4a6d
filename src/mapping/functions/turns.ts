/** A message as providers write it, its content a list. */
type Turn = { role?: unknown; content?: unknown }

/** Consecutive messages of the same role as one, with the content of all. */
export function joinTurns(turns?: readonly Turn[]): Turn[] | undefined {
  if (turns === undefined) return undefined
  const joined: Turn[] = []
  for (const turn of turns) {
    const earlier = joined.at(-1)
    if (earlier === undefined || earlier.role !== turn.role) joined.push(turn)
    else joined[joined.length - 1] = { ...earlier, content: [earlier.content ?? [], turn.content ?? []].flat() }
  }
  return joined
}

/**
 * A copy of a value in which the strings at these paths are distinct, ignoring case: a repeated one gets its number.
 * Paths are names of members with dots between them; lists on the way are walked in order.
 */
export function distinctNames(value?: unknown, paths: readonly string[] = []): unknown {
  const split = paths.map((path) => path.split('.'))
  return numberRepeated(value, split, new Map())
}

function numberRepeated(value: unknown, paths: readonly string[][], counts: Map<string, number>): unknown {
  if (Array.isArray(value)) return value.map((item) => numberRepeated(item, paths, counts))
  if (typeof value === 'string') return paths.some(({ length }) => length === 0) ? numbered(value, counts) : value
  if (typeof value !== 'object' || value === null) return value
  const members = Object.entries(value).map(([name, member]) => {
    const inner = paths.filter(([first]) => first === name).map((path) => path.slice(1))
    return [name, inner.length === 0 ? member : numberRepeated(member, inner, counts)]
  })
  return Object.fromEntries(members)
}

function numbered(name: string, counts: Map<string, number>): string {
  const key = name.toLowerCase()
  const count = (counts.get(key) ?? 0) + 1
  counts.set(key, count)
  return count === 1 ? name : `${name} [${count}]`
}
