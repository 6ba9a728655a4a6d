/** A range of a text. */
export type Range = { start: number; end: number }

/** The most that patterns can look at, of which the match is a part. UTF-16 units. */
const reaches = new WeakMap<RegExp, number>()

/**
 * Compiles a regular expression in which every repetition has an end, none is inside another, and which can be tried in few ways. `matchesIn`
 * finds what it matches in bounded time. Throws an Error that names it.
 */
export function boundedPattern(name: string, pattern: string, flags: string): RegExp {
  const reach = requireBounded(name, pattern)
  const compiled = new RegExp(pattern, flags)
  reaches.set(compiled, reach)
  return compiled
}

/** Returns a pattern with another source, in place of letters that look like others. */
export function withSource(pattern: RegExp, source: string): RegExp {
  const compiled = new RegExp(source, pattern.flags)
  reaches.set(compiled, reaches.get(pattern) ?? Infinity)
  return compiled
}

/**
 * Yields what a pattern matches, other than nothing. A long text is searched piece by piece. Throws an Error where all patterns together have
 * searched for too long without letting other work run in between: a search itself cannot be interrupted.
 */
export function* matchesIn(text: string, pattern: RegExp): Generator<Range> {
  const reach = reaches.get(pattern) ?? Infinity
  const size = text.length <= piece || reach > piece ? text.length : piece
  for (let from = 0; from < text.length; from += size) {
    const begin = Math.max(0, from - reach)
    const given = size === text.length ? text : text.slice(begin, from + size + reach)
    const found = given.matchAll(pattern)
    for (let next = timed(found); !next.done; next = timed(found)) {
      const start = (size === text.length ? 0 : begin) + next.value.index
      const end = start + next.value[0].length
      if (end > start && start >= from && start < from + size) yield { start, end }
    }
  }
}

/** Returns a text with other words in place of what a pattern matches. Throws an Error as `matchesIn` does. */
export function withoutMatches(text: string, pattern: RegExp, instead: string): string {
  let changed = ''
  let from = 0
  for (const { start, end } of matchesIn(text, pattern)) {
    if (start < from) continue
    changed += text.slice(from, start) + instead
    from = end
  }
  return from === 0 ? text : changed + text.slice(from)
}

/** Characters that are searched at once. */
const piece = 16_384
/** Time for which patterns may search before other work runs. Milliseconds. */
const maxMs = 2_000
let spentMs = 0

function timed<Value>(found: Iterator<Value>): IteratorResult<Value> {
  if (spentMs === 0) setImmediate(() => (spentMs = 0))
  if (spentMs > maxMs)
    throw new Error(`the patterns take longer than ${maxMs} ms for this text: shorten their repetitions`)
  const began = performance.now()
  const next = found.next()
  spentMs += performance.now() - began
  return next
}

const token =
  /\\k<\w+>|\\.|\[(?:\\.|[^\]\\])*\]|(?<open>\((?:\?(?:[:=!]|<[=!]|<\w+>))?)|(?<close>\))|(?<or>\|)|(?<repeat>[*+?]|\{\d+(?:,\d*)?\})\??|./gsu

/** Returns how many characters a pattern looks at, at most. */
function requireBounded(name: string, pattern: string): number {
  const requires = (isFine: boolean, why: string) => {
    if (!isFine) throw new Error(`${name} ${why}`)
  }
  /** Flags of the open groups: true for one that can be matched in several ways; the last is the one that was closed. */
  const groups: boolean[] = [false]
  /** Lengths of the open groups, and of what was read last. */
  const lengths: number[] = [0]
  let last = 0
  let closed: boolean | undefined
  let ways = 1
  const add = (length: number) => {
    lengths.push((lengths.pop() ?? 0) + length)
  }
  for (const { 0: text, groups: { open, close, or, repeat } = {} } of pattern.matchAll(token)) {
    requires(!/^\\(?:[1-9]|k<)/.test(text), 'refers to an earlier group, which may take long')
    if (open) {
      groups.push(false)
      lengths.push(0)
    } else if (or) groups[groups.length - 1] = true
    else if (repeat) {
      const [least, most] = countsOf(repeat)
      requires(most < Number.POSITIVE_INFINITY, `repeats without end (${repeat}): write {1,64} or the like`)
      requires(!closed || most < 2, `repeats a group (${repeat}) that has repetitions or choices inside`)
      if (most > least) groups[groups.length - 1] = true
      ways *= most - least + 1
      add(last * Math.max(0, most - 1))
    } else {
      last = close ? (lengths.pop() ?? 0) : maxUnits
      add(last)
    }
    closed = close ? groups.pop() : undefined
    if (close && closed) groups[groups.length - 1] = true
    requires(ways <= mostWays, `can be tried in more than ${mostWays} ways: shorten its repetitions`)
  }
  return lengths.reduce((sum, length) => sum + length, 0)
}

/** UTF-16 units of one character. */
const maxUnits = 2

const mostWays = 500

function countsOf(repeat: string): [least: number, most: number] {
  if (repeat === '?') return [0, 1]
  if (repeat === '*' || repeat === '+') return [0, Number.POSITIVE_INFINITY]
  const [least = 0, most = repeat.includes(',') ? Number.POSITIVE_INFINITY : least] = (repeat.match(/\d+/g) ?? []).map(
    Number,
  )
  return [least, most]
}
