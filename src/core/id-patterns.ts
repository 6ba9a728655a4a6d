/** Maximum length of an id that is compared with patterns. */
const maxLength = 4_096

/** Steps with which an address leaves the folder that a pattern names. */
const leavesFolder = /(?:^|[\\/])\.{1,2}(?:[\\/]|$)|%2e|%2f|%5c/i

/** Checks whether an id is in a list of ids and patterns, in which `*` stands for any characters. */
export function matchesIdPattern(patterns: readonly string[], id: string): boolean {
  if (patterns.includes(id)) return true
  if (id.length > maxLength || leavesFolder.test(id)) return false
  return patterns.some((pattern) => pattern.includes('*') && matches(pattern.split('*'), id))
}

/** Checks whether an id consists of these pieces, in this order, and anything between them. */
function matches(pieces: readonly string[], id: string): boolean {
  const [first = '', ...others] = pieces
  const last = others.pop() ?? ''
  if (!id.startsWith(first) || id.length < first.length + last.length || !id.endsWith(last)) return false
  let at = first.length
  for (const piece of others) {
    const found = id.indexOf(piece, at)
    if (found < 0) return false
    at = found + piece.length
  }
  return at <= id.length - last.length
}
